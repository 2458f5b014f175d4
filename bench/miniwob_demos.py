"""Scripted demonstrations for MiniWoB++'s tasks: what a person would do on a page, for its recording."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from bench.environments.miniwob_episode import Action, Page

_WIDGETS = {"text": "input_text", "radio": "input_radio", "checkbox": "input_checkbox"}


def click(page: Page, tag: str, text: str = "", *, beside: str = "", number: int = 1) -> int:
    """The ref of such an element; LookupError where the page has none."""
    alike = [
        each.ref
        for each in page.elements
        if each.tag == tag and (not text or each.text == text) and (not beside or each.beside == beside)
    ]
    if len(alike) < number:
        raise LookupError(f"{page.task} {page.seed}: no {tag} {text or beside}")
    return alike[number - 1]


def _button(page: Page) -> list[Action]:
    return [click(page, "button", page.slots["target"])]


def _option(page: Page) -> list[Action]:
    return [click(page, "input_radio", beside=page.slots["target"]), click(page, "button", "Submit")]


def _checkboxes(page: Page) -> list[Action]:
    wanted = [value for name, value in page.slots.items() if name.startswith("target")]
    boxes: list[Action] = [click(page, "input_checkbox", beside=value) for value in wanted]
    return [*boxes, click(page, "button", "Submit")]


def _dialog(page: Page) -> list[Action]:
    target = page.slots["target"]
    return [click(page, "button", "Close" if target == "x" else target)]


def _widget(page: Page) -> list[Action]:
    target = page.slots["target"]
    return [click(page, _WIDGETS.get(target, target))]


def _typed(page: Page, tag: str) -> list[Action]:
    return [click(page, tag), page.slots["target"], click(page, "button", "Submit")]


def _password(page: Page) -> list[Action]:
    target = page.slots["target"]
    first, second = (click(page, "input_password", number=number) for number in (1, 2))
    return [first, target, second, target, click(page, "button", "Submit")]


def _login(page: Page) -> list[Action]:
    name, password = click(page, "input_text"), click(page, "input_password")
    return [name, page.slots["username"], password, page.slots["password"], click(page, "button", "Login")]


def _search(page: Page) -> list[Action]:
    typed: list[Action] = []
    for label in ("Genre", "Director", "Year"):
        typed += [click(page, "input_text", beside=label), page.slots[label.lower()]]
    return [*typed, click(page, "div", "Submit")]


DEMOS: Mapping[str, Callable[[Page], list[Action]]] = MappingProxyType(
    {
        "click-test": lambda page: [click(page, "button")],
        "click-test-2": lambda page: [click(page, "button", "ONE")],
        "click-button": _button,
        "click-link": lambda page: [click(page, "span", page.slots["target"])],
        "click-option": _option,
        "click-checkboxes": _checkboxes,
        "click-dialog": lambda page: [click(page, "button", "Close")],
        "click-dialog-2": _dialog,
        "click-tab": lambda page: [click(page, "a", f"Tab #{page.slots['target']}")],
        "click-widget": _widget,
        "click-button-sequence": lambda page: [click(page, "button", "ONE"), click(page, "button", "TWO")],
        "click-collapsible": lambda page: [click(page, "h3"), click(page, "button", "Submit")],
        "unicode-test": _button,
        "sign-agreement": lambda page: [click(page, "button", page.slots["button"])],
        "enter-text": lambda page: _typed(page, "input_text"),
        "enter-date": lambda page: _typed(page, "input_date"),
        "choose-list": lambda page: _typed(page, "select"),
        "enter-password": _password,
        "login-user": _login,
        "focus-text": lambda page: [click(page, "input_text")],
        "focus-text-2": lambda page: [click(page, "input_text", number=int(page.slots["target"]))],
        "multi-orderings": _search,
    }
)
