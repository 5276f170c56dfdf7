package ui

import "strconv"

// PageSize is how many rows a list shows.
const PageSize = 50

// Pager leads through a list.
type Pager struct {
	From, To, Total int
	Newer, Older    string // URLs; empty where there is nothing
}

// PageOf reads which page is asked for; the first is 1.
func PageOf(r *Request) int {
	n, err := strconv.Atoi(r.FormValue("page"))
	if err != nil || n < 1 || n > 1_000_000 {
		return 1
	}
	return n
}

// NewPager leads from a page that shows so many of all.
func NewPager(r *Request, page, shown, total int) Pager {
	at := func(n int) string {
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
	p := Pager{From: (page-1)*PageSize + 1, To: (page-1)*PageSize + shown, Total: total}
	if page > 1 {
		p.Newer = at(page - 1)
	}
	if p.To < total {
		p.Older = at(page + 1)
	}
	return p
}
