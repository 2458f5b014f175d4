"""Remember, squeeze, recall, restore. Start `crystalmem edge run` first."""

from crystalmem_client import Client

with Client() as memory:
    first = memory.remember("Mug 2 is in cabinet 3. The red valve opens counter-clockwise.", kind="memory")
    for trip in range(200):
        memory.remember(
            f"Trip {trip}: drove from dock A to shelf {trip % 7}; battery {90 - trip % 40} %, no obstacles."
        )
    print("budget now", memory.set_budget(bytes=24_000)["rungs"])
    hit = memory.recall("which way does the red valve open?", k=1)
    print("at the trough:", hit.hits[0].rung, "|", hit.hits[0].text.strip())
    memory.outcome(hit.recall_id, g=1.0)
    print("budget back", memory.set_budget(fraction=1.0)["rungs"], memory.settle()["state"])
    print("restored:", memory.get(first["id"])["text"])
