package ui

import "testing"

const table = `<p>5 &lt; 6</p><table class="table table-even"><thead><tr><th scope="col">Test</th><th scope="col">A &amp; "B"</th><th scope="col"><span class="hidden-text">Action</span></th></tr></thead><tbody>`

const tableLabelled = `<tr><td title="&lt;b&gt; &amp; c">a</td><td data-label="A &amp; &#34;B&#34;" class="num">1</td><td>x</td></tr><tr><td colspan="3">wide</td></tr>`

func TestEachCellOfACardHasTheNameOfItsColumn(t *testing.T) {
	t.Parallel()
	const rows, end = `<tr><td title="&lt;b&gt; &amp; c">a</td><td class="num">1</td><td>x</td></tr><tr><td colspan="3">wide</td></tr>`, `</tbody></table><table><tbody><tr><td>b</td><td>2</td></tr></tbody></table><table class="matrix"><thead><tr><th>M</th><th>N</th></tr></thead><tbody><tr><td>b</td><td>2</td></tr></tbody></table>`
	want := table + tableLabelled + end
	if got := new(labels).add([]byte(table + rows + end)); string(got) != want {
		t.Errorf("a page:\n%s\nwant\n%s", got, want)
	}
	l, parts := new(labels), "" // of a page that is sent as its rows are read
	for _, part := range []string{table, rows, rows, end} {
		parts += string(l.add([]byte(part)))
	}
	if want := table + tableLabelled + tableLabelled + end; parts != want {
		t.Errorf("its parts:\n%s\nwant\n%s", parts, want)
	}
	const none = `<table><tr><td>1</td><td>2</td></tr></table>`
	if got := new(labels).add([]byte(none)); string(got) != none {
		t.Errorf("a page without cards: %s", got)
	}
}
