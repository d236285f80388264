"""workflow/report/results.md, as it follows from the declarations: `python -m specledger.tables.document > FILE`."""

import sys
from itertools import groupby

from specledger.tables.columns import Column, Table
from specledger.tables.registry import TABLES

BEFORE = """\
# What the columns mean

All tables are CSV in UTF-8, one row per observation or aggregate; an empty cell is a missing value.
Columns that end in `_lo` and `_hi` are a two-sided 95% interval over seeds (Student's t; of ratios on the
log scale) unless their table says otherwise, and are empty where one seed gives none. Seconds are the only
columns that differ between two runs of the same study on the same machine, with those that are computed from
them.

`results/<study>/tables/`, what the report shows:
"""
AFTER = """\
`results/<study>/compare/`, what `snakemake compare` makes:

## compare.csv: the study beside a reference
One row per figure that should carry over to another run of the study; the page `report/<study>/compare.html` shows the
same and states the rules. They are the configuration's `compare`, fixed before either study is looked at.

| column | meaning |
| --- | --- |
| topic, quantity | losses, acceptance, tokens per round, ratios of times (speed-ups), distribution kept, controls caught, weights; the figure |
| engine, name, gamma, setting | of the figure: engine; model, head or drafter; γ; of a control, its kind |
| yours, reference | the figure of either side, with its interval; of tests the least p-value after Bonferroni over the figure's own tests, of controls 1 where caught, of counts that must be 0 the count, of weights the seeds that are equal to the bit and those made alike |
| yours_n, reference_n | seeds of a mean; draws or texts of a test |
| difference | yours less the reference (of ratios: of their logarithms), with the interval at 1 − 2 · `equivalence_level`, each side with a variance of its own (Welch) |
| margin | within which it counts as none, in the same unit |
| p_value, p_holm | of the two-sample t-test with pooled variance; after Holm over all means and ratios of the table |
| verdict | *differs*: p_holm below `difference_level`; *agrees*: not so, and the interval of the difference lies inside the margin, or both sides are equal to the last digit; *undecided*: neither. Tests, counts, controls and weights agree where both sides say the same; a kept distribution with under a quarter of the reference's draws is undecided. *not compared*: another text, other settings of what the figure rests on, a speed-up of another machine, a figure of one side alone, a control that so many draws can't show |
| why | the reason of the verdict |

`summary.json` holds what the first screen says: best row (of those that are lossless, where
there are any) and slowest row, paired difference of the losses and its equivalence test, c,
counts of checks and of broken rules. The raw observations lie beside the tables:

## history.csv, runs.csv, rounds.csv, apart.csv, forwards.csv, contexts.csv, texts.csv
| column | meaning |
| --- | --- |
| step, train_loss, validation_loss, validation_mtp_loss, learning_rate, elapsed_s | of one training; on the way, validation is 256 windows |
| seed, repeat, order | of a text: the block that pairs it with its plain run, and its place in the block |
| rounds, drafted, examined, accepted, full_rounds | rounds; proposals made, looked at, kept; rounds that kept all γ |
| counted | whether acceptance and rounds of the text count: those of the first `sweep.stop.blocks` blocks do |
| copy, clocked | copy 1: the second plain run of a block; clocked 0: a run that reads no clocks, whose parts are empty |
| draft_s, catch_up_s, verify_s, accept_s, sync_s, other_s, wall_s | s, as in time.csv |
| seconds_lo, seconds_hi | in sweep/…/forwards.csv: quartiles over the blocks of what a piece took |
| round, accept_len, accept_probs | sweep/…/rounds.csv (acceptance/…/rounds.csv and sweep/…/apart.csv: of texts that were not timed): number in the text; accepted proposals; min(1, p/q) of each proposal |
| null_draws, null_tv_lo, null_tv_hi | acceptance/…/contexts.csv: .5% and 99.5% quantiles of TV for so many draws that follow p (`acceptance.published_draws`) |
| text, beta, kept | acceptance/…/texts.csv: of a plainly decoded text at each position, Σ min(p, q), and min(1, q/p) of its symbol |
| device, threads | what it ran on |

## round.json: acceptance/{seed}/, rounds of the draft model on validation text
| key | meaning |
| --- | --- |
| drafter, gamma, engine, temperature, symbols | of all rounds; characters are numbered as in `symbols` |
| position, context | place in the validation text, and the characters before it |
| proposals, q, p | the proposals; rows of q that they were drawn from; the rows of p, one more, of one forward |
| accept_uniforms, extra_uniform | the random numbers of the verdict |
| accept_len, token | accepted proposals, and the residual or bonus token after them |
| alone_max_difference | largest difference between those rows of p and rows from forwards that never saw later proposals |
"""


def _rows(columns: tuple[Column, ...]) -> list[str]:
    said = [(column.meaning, column.names.replace(" ", ", ")) for column in columns]
    groups = [(", ".join(names for _, names in group), meaning) for meaning, group in groupby(said, lambda one: one[0])]
    return ["| column | meaning |", "| --- | --- |", *(f"| {names} | {meaning} |" for names, meaning in groups)]


def section(name: str, table: Table) -> str:
    """What results.md says of one table."""
    parts = [f"## {name}.csv: {table.title}", table.about.strip(), "\n".join(_rows(table.columns)), table.after.strip()]
    return "\n\n".join(part for part in parts if part) + "\n"


def document() -> str:
    return "\n".join((BEFORE, *(section(name, table) for name, table in TABLES.items()), AFTER))


if __name__ == "__main__":
    sys.stdout.write(document())
