"""Text out of appointments (iCalendar) and contacts (vCard)."""

import quopri
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

from sleuth.tools.documents.formats.content import Content, Section, clean_date
from sleuth.tools.errors import DocumentError
from sleuth.tools.places import Place
from sleuth.tools.text.encodings import decode
from sleuth.tools.text.normalization import single_line, title_from

_LINE = re.compile(r'(?:[\w-]+\.)?([\w-]+)((?:;(?:[^":;]|"[^"]*")*)*):(.*)', re.DOTALL)
_PARAMETER = re.compile(r';([\w-]+)(?:=("[^"]*"|[^;]*))?')
_SOFT_BREAK = re.compile(r"(?im)^((?>[^\n:]*?QUOTED-PRINTABLE)[^\n]*(?:=\n[^\n]*)*?)=\n")
_TIME = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})(?:[T ](\d{2}):?(\d{2}).*)?", re.DOTALL)
_DURATION = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:\d+S)?)?")
_ESCAPE = re.compile(r"\\(.)")
_STATUS = {"CANCELLED", "TENTATIVE", "COMPLETED"}
_CONTACT = {
    "ORG": "Organization", "TITLE": "Position", "ROLE": "Role", "EMAIL": "Email", "TEL": "Phone", "ADR": "Address",
    "BDAY": "Birthday", "ANNIVERSARY": "Anniversary", "NICKNAME": "Nickname", "URL": "Page", "IMPP": "Chat",
    "CATEGORIES": "Tags", "RELATED": "Related", "NOTE": "Note", "GENDER": "Gender", "LANG": "Language",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Property:
    """A line `NAME;PARAMETER=VALUE:VALUE`."""

    name: str
    parameters: Mapping[str, str]
    value: str

    @property
    def text(self) -> str:
        """The value without escapes."""
        return _ESCAPE.sub(lambda match: "\n" if match[1] in "nN" else match[1], self.value).strip()


@dataclass(slots=True)
class _Component:
    """A part between BEGIN and END, with its own parts."""

    name: str
    properties: list[_Property] = field(default_factory=list)
    parts: "list[_Component]" = field(default_factory=list)

    def all(self, *names: str) -> list[_Property]:
        return [entry for entry in self.properties if entry.name in names]

    def text(self, name: str) -> str:
        return next((entry.text for entry in self.all(name)), "")


def read_calendar(data: bytes, *, charset: str | None = None) -> Content:
    """Return the appointments and tasks of a calendar, each with its own place."""
    calendars = [part for part in _parsed(decode(data, declared=charset)) if part.name == "VCALENDAR"]
    events = [
        (calendar.text("METHOD"), part)
        for calendar in calendars
        for part in calendar.parts
        if part.name in ("VEVENT", "VTODO", "VJOURNAL")
    ]
    if not events:
        raise DocumentError("has no appointments. Export the calendar again, or leave it out.")
    title = next(filter(None, (calendar.text("X-WR-CALNAME") for calendar in calendars)), "")
    first = events[0][1]
    is_single = len({event.text("UID") for _, event in events}) == 1
    when = _when(first.all("DTSTART", "DUE")[0])[:10] if is_single and first.all("DTSTART", "DUE") else None
    title = title or (first.text("SUMMARY") if is_single else "")
    author = next(map(_person, first.all("ORGANIZER")), None) if is_single else None
    return Content(title_from(title), [_event(method, event) for method, event in events], author, when)


def _event(method: str, event: _Component) -> Section:
    summary = title_from(event.text("SUMMARY")) or "without a summary"
    times = {entry.name: _when(entry) for entry in event.all("DTSTART", "DTEND", "DUE", "COMPLETED", "RECURRENCE-ID")}
    whole_day = clean_date(times["DTEND"]) if len(times.get("DTEND", "")) == 10 else ""
    if whole_day:  # the day after the last one
        last = (date.fromisoformat(whole_day) - timedelta(days=1)).isoformat()
        times["DTEND"] = last if last > times.get("DTSTART", "") else ""
    status = event.text("STATUS").upper() if event.text("STATUS").upper() in _STATUS else ""
    facts = {
        "Status": ("cancelled" if method.upper() == "CANCEL" else status.lower()),
        "Start": times.get("DTSTART", ""),
        "End": times.get("DTEND", ""),
        "Due": times.get("DUE", ""),
        "Duration": _duration(event.text("DURATION")),
        "Completed": times.get("COMPLETED", ""),
        "In place of": times.get("RECURRENCE-ID", ""),
        "Repeats": "; ".join(map(_rule, event.all("RRULE"))),
        "Also on": ", ".join(map(_when, event.all("RDATE"))),
        "Except": ", ".join(map(_when, event.all("EXDATE"))),
        "Place": event.text("LOCATION"),
        "Organizer": ", ".join(map(_person, event.all("ORGANIZER"))),
        "People": ", ".join(map(_person, event.all("ATTENDEE"))),
        "Contact": event.text("CONTACT"),
        "Tags": ", ".join(entry.text for entry in event.all("CATEGORIES")),
        "Link": event.text("URL"),
    }
    lines = [f"## {summary}", *(f"{name}: {single_line(value)}" for name, value in facts.items() if value)]
    texts = (entry.text for entry in event.all("DESCRIPTION", "COMMENT"))
    day = times.get("DTSTART", times.get("DUE", ""))[:10]
    place = f"appointment “{summary}”" + (f", {day}" if day else "")
    return Section("\n\n".join(["\n".join(lines), *filter(None, texts)]), Place(place))


def _when(entry: _Property) -> str:
    """Return dates with their times and zone, such as 2026-03-02 10:00 (Europe/Berlin)."""
    zone = entry.parameters.get("TZID", "")
    return ", ".join(_moment(value, zone) for value in entry.value.split(","))


def _moment(value: str, zone: str) -> str:
    match = _TIME.match(value.strip())
    if match is None:
        return value
    year, month, day, hour, minute = match.groups()
    time = f" {hour}:{minute}" if hour else ""
    zone = "UTC" if value.strip().endswith("Z") else zone
    return f"{year}-{month}-{day}{time}" + (f" ({zone})" if time and zone else "")


def _duration(value: str) -> str:
    match = _DURATION.fullmatch(value)
    units = zip(match.groups(), ("w", "d", "h", "min"), strict=True) if match else ()
    return " ".join(f"{number} {unit}" for number, unit in units if number)


def _rule(entry: _Property) -> str:
    """Return a rule such as FREQ=WEEKLY;BYDAY=MO as "weekly, byday MO"."""
    pairs = (part.partition("=") for part in entry.value.split(";"))
    parts = {name.lower(): _moment(value, "") if name == "UNTIL" else value for name, _, value in pairs}
    frequency = parts.pop("freq", "").lower()
    return ", ".join([frequency, *(f"{name} {value}" for name, value in parts.items())])


def _person(entry: _Property) -> str:
    """Return the name and the address of a person, and whether they come."""
    address = re.sub("(?i)^mailto:", "", entry.text)
    name = entry.parameters.get("CN", "")
    person = f"{name} <{address}>" if name and name != address else address
    reply = entry.parameters.get("PARTSTAT", "").lower().replace("-", " ")
    return f"{person} ({reply})" if reply else person


def read_contacts(data: bytes) -> Content:
    """Return the contacts of a file of vCards, each with its own place."""
    cards = [part for part in _parsed(decode(data)) if part.name == "VCARD"]
    if not cards:
        raise DocumentError("has no contacts. Export them again, or leave it out.")
    sections = list(map(_card, cards))
    title = sections[0].text.partition("\n")[0].removeprefix("## ") if len(cards) == 1 else None
    return Content(title_from(title), sections)


def _card(card: _Component) -> Section:
    family, given_name, *more = [*map(single_line, card.text("N").split(";")), "", ""]
    parts = [*more[1:2], given_name, *more[:1], family]
    name = (
        title_from(card.text("FN")) or title_from(" ".join(parts)) or title_from(card.text("ORG")) or "without a name"
    )
    lines = [f"## {name}"]
    for entry in card.properties:
        value = entry.text
        if entry.name in ("ADR", "ORG"):
            value = ", ".join(filter(None, map(single_line, value.split(";"))))
        elif entry.name in ("BDAY", "ANNIVERSARY"):
            value = _moment(value, "")
        if entry.name in _CONTACT and value:
            types = entry.parameters.get("TYPE", "").lower().split(",")
            labels = ",".join(kind for kind in types if kind not in ("", "pref", "internet", "voice"))
            lines.append(f"{_CONTACT[entry.name]}{f' ({labels})' if labels else ''}: {value}")
    return Section("\n".join(lines), Place(f"contact “{name}”"))


def _parsed(text: str) -> list[_Component]:
    """Return the outermost components of a text; lines that cannot be read are left out."""
    while (joined := _SOFT_BREAK.sub(r"\1", text)) != text:
        text = joined
    outermost = [_Component("")]
    stack = [outermost[0]]
    for line in re.sub(r"\n[ \t]", "", text).split("\n"):
        entry = _property(line)
        if entry is None:
            continue
        if entry.name == "BEGIN":
            stack[-1].parts.append(_Component(entry.value.strip().upper()))
            stack.append(stack[-1].parts[-1])
        elif entry.name == "END":
            stack = stack[:-1] if len(stack) > 1 else stack
        else:
            stack[-1].properties.append(entry)
    return outermost[0].parts


def _property(line: str) -> _Property | None:
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    parameters: dict[str, str] = {}
    for name, value in _PARAMETER.findall(match[2]):
        key, text = (name.upper(), value.strip('"')) if value else ("TYPE", name)  # vCard 2.1 names types alone
        parameters[key] = f"{parameters[key]},{text}" if key in parameters else text
    value, encoding = match[3], parameters.get("ENCODING", parameters.get("TYPE", "")).upper()
    if "QUOTED-PRINTABLE" in encoding:
        value = decode(quopri.decodestring(value.encode()), declared=parameters.get("CHARSET")).replace("\n", "\\n")
    return _Property(match[1].upper(), parameters, value)
