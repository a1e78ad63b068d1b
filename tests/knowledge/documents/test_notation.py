import pytest

from knowledge.documents.markup import html
from knowledge.documents.notation import Script, Span, join_spans


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("below 10<sup>6</sup> CFU", "below 10^6 CFU"),
        ("10<sup>−3</sup> mol, x<sup>n+1</sup>", "10^−3 mol, x^(n+1)"),
        ("Offers<sup>(1)</sup> made", "Offers^(1) made"),
        ("H<sub>2</sub>O and 10<sub>2</sub>", "H2O and 10_2"),
        ("the 1<sup>st</sup> Widget<sup>™</sup>, CO<sub>2</sub><sup>*</sup>",
         "the 1st Widget™, CO2*"),
        ("3<sup>1</sup>/<sub>2</sub> inches, <sup>1</sup>⁄<sub>4</sub>", "3 1/2 inches, 1⁄4"),
        ("costs 50<sup>1)</sup>", "costs 50[1)]"),
        ('costs 50<sup><a href="#fn1">1</a></sup>', "costs 50[1]"),
        ('costs 50<a href="#fn1"><sup>1</sup></a>', "costs 50[1]"),
        ('up to <a href="#a">10<sup>6</sup> units</a>', "up to 10^6 units"),
        ('costs 50<a href="#fn1"><i><b><sup>1</sup></b></i></a>', "costs 50[1]"),
        ("<s>400 euros</s> 450 <del>pounds</del> euros", "~~400 euros~~ 450 ~~pounds~~ euros"),
        ("<s>18 m<sup>3</sup>/h</s> 21 m<sup>3</sup>/h", "~~18 m^3/h~~ 21 m^3/h"),
        ('<span style="text-decoration: line-through">old</span> new', "~~old~~ new"),
        ("<ruby>漢字<rt>かんじ</rt></ruby>", "漢字"),
        ("<math><mfrac><mn>1</mn><mn>2</mn></mfrac></math> tablet", "1/2 tablet"),
        ("<math><msup><mn>10</mn><mrow><mo>-</mo><mn>3</mn></mrow></msup></math>", "10^-3"),
        ("<math><msqrt><mn>2</mn><mo>+</mo><mi>x</mi></msqrt></math>", "√(2+x)"),
        ("<math><msqrt><mn>2</mn><mi>g</mi><mi>h</mi></msqrt></math>", "√(2gh)"),
        ("<math><mn>2</mn><mroot><mn>8</mn><mn>3</mn></mroot><mi>x</mi></math>", "2 ^3√8 x"),
        ("<math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mi>c</mi></mfrac></math>",
         "(a+b)/c"),
        ("<math><mfrac><mi>v</mi><mrow><mn>2</mn><mi>g</mi></mrow></mfrac></math>", "v/(2g)"),
        ("<math><mn>2</mn><mstyle><mfrac><mn>1</mn><mn>2</mn></mfrac></mstyle><mi>a</mi></math>",
         "2 1/2 a"),
        ("<math><msup><mi>e</mi><mrow><mi>a</mi><mi>b</mi></mrow></msup></math>", "e^(ab)"),
        ("<math><mfenced><mrow><mi>a</mi><mo>-</mo><mi>b</mi></mrow></mfenced></math>", "(a-b)"),
        ("<math><mi>x</mi><mo>\u2264<!-- \u2264 --></mo><mn>5</mn><mtext> and</mtext></math>",
         "x\u22645 and"),
        ("<math><mo>(</mo><mn>1</mn><mo>+</mo><mi>x</mi><msup><mo>)</mo><mn>2</mn></msup></math>",
         "(1+x)^2"),
        ("<math><mfrac linethickness=0><mi>n</mi><mi>k</mi></mfrac></math>", "binom(n, k)"),
        ('a <span style="display:none"><math><mn>7</mn></math></span><img src="a" alt="7"> b',
         "a 7 b"),
        ("<code>10<sup>6</sup> <s>5</s></code>", "10^6 ~~5~~"),
        ("<math><mmultiscripts><mi>U</mi><mn>2</mn><none/><mprescripts/><mn>92</mn><mn>238</mn>"
         "</mmultiscripts></math>", "_92^238 U_2"),
        ("is<math display=block><mn>7</mn></math>now", "is 7 now"),
        ("a <mjx-container><mjx-math><mjx-c>8</mjx-c></mjx-math><mjx-assistive-mml><math><mi>x</mi>"
         "<mo>=</mo><mn>8</mn></math></mjx-assistive-mml></mjx-container> b", "a x=8 b"),
        ("<mjx-container><mjx-math data-latex='10^6'><mjx-msup>10<mjx-script>6</mjx-script>"
         "</mjx-msup></mjx-math></mjx-container> b", "$10^6$ b"),
        ("<bdo dir=rtl>7) <b>kg</b></bdo> and <bdo dir=ltr>5 כוס</bdo>",
         "gk (7 and סוכ 5"),
        ("<span style='unicode-bidi:bidi-override;direction:rtl'>ed.a@b</span>", "b@a.de"),
    ],
)  # fmt: skip
def test_raised_lowered_and_struck_out_text_and_formulas_keep_their_meaning(
    markup: str, shown: str
) -> None:
    assert html.read(f"<p>{markup}</p>".encode(), "a.html").content == shown
    table = f"<table><tr><td>{markup}</td><td>b</td></tr></table>"
    assert f"| {shown} | b |" in html.read(table.encode(), "a.html").content


def test_a_formula_that_a_page_only_draws_is_reported() -> None:
    drawn = "10<mjx-script>6</mjx-script>"
    page = html.read(f"<p>Dose<mjx-container>{drawn}</mjx-container>.".encode(), "a.html")

    assert page.content == "Dose."
    assert [(part.what, part.count) for part in page.left_out] == [("formula", 1)]


def test_a_digit_behind_an_exponent_does_not_become_a_part_of_it() -> None:
    assert join_spans([Span("10"), Span("6", Script.RAISED), Span("5")]) == "10^(6)5"
