"""The manual: its chapters, the command that shows them, and the generated reference.

The chapters are the Markdown files of this folder, installed with the program, so that
`mpilbm manual` works without internet. `pages` finds and shows them, `reference` writes the
chapter `case-file.md` from the tables of the case file, `site` builds the HTML pages and `layers`
lists the layers of the package. The folder may import the case file and lower layers; only the
command line imports it. A newcomer adds a chapter here: a file `NAME.md` that begins with
`# Title`, and its name in `pages.ORDER`.
"""
