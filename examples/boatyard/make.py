"""Write the ten files of a small boatyard into a folder: `python examples/boatyard/make.py FOLDER`.

All names are invented. `questions.jsonl` has questions about these files, with their answers.
"""

import csv
import sys
from datetime import datetime
from pathlib import Path

from docx import Document
from openpyxl import Workbook

STAFF = [
    ("Name", "Job", "Department", "Started", "Extension"),
    ("Wanda Osterly", "managing director", "office", "2004-05-03", "10"),
    ("Tomas Reyle", "sales manager", "office", "2012-09-17", "23"),
    ("Petra Lund", "accountant", "office", "2015-02-02", "12"),
    ("Mara Quill", "painter", "paint shop", "2019-03-04", "41"),
    ("Dennis Haake", "painter", "paint shop", "2021-08-16", "42"),
    ("Jonas Ek", "head of service", "service", "2009-11-30", "31"),
    ("Lea Marin", "mechanic", "service", "2022-06-01", "33"),
    ("Nora Svell", "head of the sail loft", "sail loft", "2016-04-11", "51"),
    ("Ruben Tack", "boatbuilder", "hull shop", "2011-10-10", "61"),
]
SUPPLIERS = [
    ("supplier", "delivers", "city", "lead time"),
    ("Ostrel Drives", "electric engines", "Vennemark", "35 days"),
    ("Lindqvist Resins", "resin and hardener", "Tofthaven", "15 days"),
    ("Carrow Timber", "oak and larch", "Upper Dell", "60 days"),
    ("Malin Ropes", "ropes and fittings", "Port Asker", "8 days"),
]
CONTRACT = """Framework contract with Kessock Ferries
Brackwater Boats builds two boats of the type Tern 6 for Kessock Ferries of Port Asker.
The first boat is delivered on 15 May 2027, the second one on 30 August 2027.
The price is 48,500 euros for each boat. A third of it is paid when the keel is laid.
For each week of delay the price falls by 1.5 percent, at most by 9 percent.
Tomas Reyle is responsible for this contract at Brackwater Boats."""
TEXTS = {
    "boats.md": """# Our boats

## Tern 4
The Tern 4 is a rowing boat of 4.20 meters. It weighs 118 kg and costs 6,900 euros. It was designed by Hal Norrow.
Its hull is made with resin from Lindqvist Resins.

## Tern 6
The Tern 6 is a harbor launch of 6.10 meters for eight passengers. It weighs 940 kg and costs 52,000 euros. It was
designed by Ilsa Brandt.

## Dunlin
The Dunlin is a day sailer of 5.30 meters. It weighs 365 kg and costs 21,400 euros. Its electric engine comes from
Ostrel Drives.
""",
    "history.html": """<html><head><title>About us</title></head><body><h1>About Brackwater Boats</h1>
<p>Brackwater Boats was founded in 1987 by Edda Brackwater in a former salt store in Ferrow. Since 2004 Wanda
Osterly has led the yard.</p>
<p>Ilsa Brandt, who designs our launches, studied naval architecture in Selmouth. Hal Norrow learned boatbuilding
from Edda Brackwater.</p>
</body></html>
""",
    "minutes-2026-03-12.md": """# Minutes of 12 March 2026

Present: Wanda Osterly, Tomas Reyle, Jonas Ek, Ruben Tack.

- Piet Aldous retires on 30 June 2026. Nora Svell becomes the new head of the sail loft.
- The crane is inspected on 8 April 2026. Ruben Tack arranges it.
- The yard does not buy a second spray booth this year. It costs 74,000 euros.
""",
    "mail-fair.eml": """From: Nora Svell <svell@brackwater.example>
To: Wanda Osterly <osterly@brackwater.example>
Subject: Stand at the fair
Date: Tue, 21 Apr 2026 09:12:00 +0200
Content-Type: text/plain; charset=utf-8

Hello Wanda,

I have booked stand B17 at the Varne Boat Fair, from 16 to 20 September 2026. We show the Dunlin with the new tan
sails.

Nora
""",
    "mail-kessock.eml": """From: Ada Morrin <morrin@kessock.example>
To: Tomas Reyle <reyle@brackwater.example>
Subject: Color of our boats
Date: Mon, 11 May 2026 16:40:00 +0200
Content-Type: text/plain; charset=utf-8

Dear Mr. Reyle,

since January Kessock Ferries belongs to the Orrin Group. Our boats therefore get its color, dark green.

Ada Morrin, Kessock Ferries
""",
    "safety.md": """# Safety at work

The fire warden of the paint shop is Mara Quill, that of the hull shop is Ruben Tack. First aid kits hang next to
each door.
Masks are mandatory in the paint shop. The paint shop is closed to visitors.
""",
    "warranty.txt": """Warranty

We repair defects of hull and engine free of charge for five years, and sails for two years. Repairs under warranty
are made by the service department. Send a photo of the defect and the number of the boat, which is on the transom.
""",
}


def main(folder: Path) -> None:
    """Write the files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    with (folder / "suppliers.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(SUPPLIERS)
    book = Workbook()
    for row in STAFF:
        book.active.append(row)
    book.save(folder / "staff.xlsx")
    contract = Document()
    contract.core_properties.created = contract.core_properties.modified = datetime(2026, 2, 9)
    for line in CONTRACT.splitlines():
        contract.add_paragraph(line, "Title" if line.startswith("Framework") else None)
    contract.save(str(folder / "contract-kessock.docx"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
