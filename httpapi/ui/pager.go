package ui

import "strconv"

// PageSize bounds the rows that a list shows.
const PageSize = 50

// Listing is a page of a list, and the way to the list's other pages.
type Listing[T any] struct {
	Rows  []T
	Pager Pager
}

// List reads the requested page of a list.
func List[T any](r *Request, read func(limit, offset int) (rows []T, total int, err error)) (Listing[T], error) {
	page := PageOf(r)
	rows, total, err := read(PageSize, (page-1)*PageSize)
	return Listing[T]{rows, NewPager(r, page, len(rows), total)}, err
}

// Pager leads through a list.
type Pager struct {
	From, To, Total int
	// More says that the list has more rows than To; their number is not known.
	More         bool
	Newer, Older string // URLs; empty where there is nothing
}

// PageOf reads the number of the requested page; the first is 1.
func PageOf(r *Request) int {
	n, err := strconv.Atoi(r.FormValue("page"))
	if err != nil || n < 1 || n > 1_000_000 {
		return 1
	}
	return n
}

// NewPager leads through a list of total rows, from a page that shows so many of them.
func NewPager(r *Request, page, shown, total int) Pager {
	return NewPagerOf(r, PageSize, page, shown, total)
}

// NewPagerOf is NewPager for pages of another size.
func NewPagerOf(r *Request, size, page, shown, total int) Pager {
	p := openPager(r, size, page, shown, (page-1)*size+shown < total)
	p.More, p.Total = false, total
	if r.beyond != "" {
		r.beyond = pageURL(r, max(1, (total+size-1)/size))
	}
	return p
}

// NewOpenPager leads from a page of a list without a known total: more says whether rows
// follow. A page beyond the end of its list leads back: to the last page where the total
// is known (NewPager), else to the first.
func NewOpenPager(r *Request, page, shown int, more bool) Pager {
	return openPager(r, PageSize, page, shown, more)
}

func openPager(r *Request, size, page, shown int, more bool) Pager {
	at := func(n int) string { return pageURL(r, n) }
	if page > 1 && shown == 0 && !more {
		r.beyond = at(1)
	}
	to := (page-1)*size + shown
	p := Pager{From: (page-1)*size + 1, To: to, Total: to, More: more}
	if page > 1 {
		p.Newer = at(page - 1)
	}
	if more {
		p.Older = at(page + 1)
	}
	return p
}

// pageURL is the request's list at another page.
func pageURL(r *Request, n int) string {
	query := r.URL.Query()
	query.Set("page", strconv.Itoa(n))
	if n == 1 {
		query.Del("page")
	}
	if len(query) == 0 {
		return r.URL.Path
	}
	return r.URL.Path + "?" + query.Encode()
}

// Tab is a link that narrows a list.
type Tab struct {
	Text, Href string
	Current    bool
}
