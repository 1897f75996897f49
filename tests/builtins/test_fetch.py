from __future__ import annotations

import pytest

from pflow.builtins.markup import convert
from tests.builtins.running import failure, outputs
from tests.builtins.server import Server

PAGE = """<!doctype html><html><head><title> A &amp;
 B </title><script>if (a < b) { "<p>no</p>" }</script><style>p { color: red }</style></head><body>
<h1>Head <em>line</em></h1>
<p>Some <b>bold </b>text, <a href="/x?a=1">a link</a>,<br>a <a href="javascript:x()">trick</a> and <code>code</code>.
<ul><li>one<li>two<ol><li>first</li><li><p>second</p></li></ol></li><li>three</ul>
<svg><title>no</title><path></svg>
<pre><code class="language-python">def f():
    return "&lt;"
</code></pre>
<blockquote><p>quoted</p></blockquote>
<table><tr><th>A<th>B<tr><td>1|2<td><p>x</p><p>y</p></table>
<hr><img src="a.png" alt="pic"> end
"""
TEXT = """Head line

Some bold text, a link,
a trick and code.

- one
- two
  1. first
  2. second
- three

def f():
    return "<"

quoted

A | B
1|2 | x y

end"""
MARKDOWN = """# Head *line*

Some **bold** text, [a link](%s/x?a=1),
a trick and `code`.

- one
- two
  1. first
  2. second
- three

```python
def f():
    return "<"
```

> quoted

| A | B |
| --- | --- |
| 1\\|2 | x y |

---

![pic](%s/d/a.png) end"""


def test_a_page_as_text_as_markdown_and_as_it_is(server: Server) -> None:
    server.routes["/d/"] = lambda handler: handler.answer(200, PAGE.encode(), "text/html")
    url = f"{server.url}/d/"
    assert outputs("fetch_url", url=url) == {"text": TEXT, "title": "A & B", "status_code": 200}
    assert outputs("fetch_url", url=url, as_="Markdown")["text"] == MARKDOWN % (server.url, server.url)
    assert outputs("FetchURL", url=url, **{"as": "raw"}) == {"text": PAGE, "title": "A & B", "status_code": 200}


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("", ""),
        ("plain", "plain"),
        ("<p>a<p>b", "a\n\nb"),
        ("<div>a<div>b</div>c</div>", "a\n\nb\n\nc"),
        ("a <b> b </b> c", "a **b** c"),
        ("<a href='x y'><div>in a block</div></a>", "[in a block](http://h/x%20y)"),
        ("<a href=x><h2>t</h2><p>d</a> e", "## [t](http://h/x)\n\n[d](http://h/x) e"),
        ("<a href=x>1<a href=y>2", "[1](http://h/x)[2](http://h/y)"),
        ("<ul><li><b>a<li>b</ul>c", "- **a**\n- b\n\nc"),
        ("<a href='#top'>up</a> <a>none</a>", "up none"),
        ("<base href='http://other/d/'><a href='x'>l</a>", "[l](http://other/d/x)"),
        ("</b></ul></table></td>x", "x"),
        ("<b><i>x</b> y", "***x*** y"),
        ("<li>stray", "- stray"),
        ("<ul><li>a<pre>b\n c</pre></ul>", "- a\n\n  ```\n  b\n   c\n  ```"),
        ("<table><td>only</td></table>", "only"),
        ("<table><tr><td>a<td><table><tr><td>b<td>c</table><tr><td>d</table>", "| a | b c |\n| --- | --- |\n| d |  |"),
        ("<pre>a ``` b</pre>", "````\na ``` b\n````"),
        ("a<script>x", "a"),
        ("<noscript><noscript>x</noscript>y</noscript>z", "z"),
        ("x&nbsp;&nbsp;y&copy;", "x y©"),
        ("<img src=x alt=''><img src='data:x' alt=y>", ""),
        ("<h2>a<br>b</h2>", "## a b"),
    ],
)
def test_pieces_of_markup(html: str, markdown: str) -> None:
    assert convert(html, "http://h/", markdown=True).text == markdown


def test_deep_nesting_is_no_trouble() -> None:
    for tag in ("b", "ul", "li", "table", "blockquote", "svg", "a"):
        assert "x" in convert(f"<{tag}>" * 20_000 + "x" + f"</{tag}>" * 20_000 + "<p>x").text


@pytest.mark.parametrize(
    ("body", "type_", "text"),
    [
        ("é".encode("latin-1"), "text/html; charset=latin-1", "é"),
        (b'<meta charset="iso-8859-1">' + "é".encode("latin-1"), "text/html", "é"),
        ("é".encode("cp1252"), "text/html", "é"),
        (b"<html><p>x", "", "x"),
        (b"<p>x", "text/plain", "<p>x"),
        (b'{"a": 1}', "application/json", '{"a": 1}'),
    ],
)
def test_charsets_and_other_types(server: Server, body: bytes, type_: str, text: str) -> None:
    server.routes["/"] = lambda handler: handler.answer(200, body, type_)
    assert outputs("fetch_url", url=server.url)["text"] == text


def test_what_cannot_be_read_is_a_failure(server: Server) -> None:
    server.routes["/pdf"] = lambda handler: handler.answer(200, b"%PDF", "application/pdf")
    server.routes["/gone"] = lambda handler: handler.answer(410, b"it is gone")
    failed = failure("fetch_url", url=f"{server.url}/pdf")
    assert failed.kind == "http" and "application/pdf" in failed.message and "http" in failed.hint
    failed = failure("fetch_url", url=f"{server.url}/gone")
    assert failed.details["status_code"] == 410 and "it is gone" in failed.message
    failed = failure("fetch_url", url=server.url, as_="pdf")
    assert failed.kind == "validation" and failed.hint == "one of text, markdown, raw"
    assert failure("fetch_url", url="x").kind == "validation"
    assert failure("fetch_url", url=server.url, timeout=0).kind == "validation"
