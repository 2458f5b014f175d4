"""The hub daemon: archive, regeneration and the ledger of many edges."""
