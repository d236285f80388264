"""Figures as they are drawn: nothing that they say is cut off at their edges."""

import pytest
from specledger.reporting import figures, fonts
from synthetic import write_synthetic_study


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_word_of_a_figure_lies_inside_it(tmp_path, monkeypatch, language):
    if language != "en" and fonts.for_figures(language) is None:
        pytest.skip("no font with Chinese letters on this machine (fonts-noto-cjk has one)")
    write_synthetic_study(tmp_path, (1, 2, 3))
    outside: list[str] = []

    def measured(figure, path, _language):
        figure.draw_without_rendering()
        edge = figure.bbox.padded(1)
        ticks = {label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis) for label in axis.get_ticklabels()}
        for text in figure.findobj(lambda one: hasattr(one, "get_text")):
            box = text.get_window_extent()
            if text in ticks or not text.get_visible() or not text.get_text():
                continue  # a tick beyond its axis keeps its label, which isn't drawn
            if not (edge.contains(*box.min) and edge.contains(*box.max)):
                outside.append(f"{path.stem}: {text.get_text()}")

    monkeypatch.setattr(figures, "save", measured)
    figures.draw_all(tmp_path, tmp_path / "figures", language)
    assert outside == []
