package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	foundTests = 100_000
	findRate   = 20
	// vacuumed is how long Postgres has to vacuum and analyse so many new rows, before
	// anything is timed.
	vacuumed = 2 * time.Minute
	finders  = 2 // people who search
)

// foundTest is a test with words that all, many, few or no others have.
func foundTest(i int) any {
	words := []string{"Pay by invoice, and a mail arrives within a minute"}
	for _, rare := range []int{2, 20, 100, 1000} {
		if i%rare == 0 {
			words = append(words, fmt.Sprint("in", rare))
		}
	}
	if i < foundTests/20 {
		words = append(words, "retired")
	}
	if i < foundTests/2 {
		words = append(words, "earlier")
	}
	items := make([]any, 5)
	for n := range items {
		items[n] = map[string]any{
			"description": fmt.Sprintf("Step %d of order %d shows %s", n, i, words[0]),
			"severity":    "major", "expectedOutcome": "The total is right",
		}
	}
	kinds := []string{"Payment Flow", "General QA", "Auth Flow"}
	return map[string]any{
		"url": "https://shop.example.com/checkout", "title": fmt.Sprint("Checkout n", i), "description": strings.Join(words, ", "),
		"jobType": kinds[i%len(kinds)], "slaMinutes": 60, "checklistItems": items,
	}
}

// sought lists the timed pages, by the thing that a person looks for.
var sought = []timedPage{
	{"list", "/dashboard/jobs"},
	{"a word of all", "/dashboard/jobs?q=checkout"},
	{"a phrase of all", "/dashboard/jobs?q=" + url.QueryEscape(`"arrives within a minute"`)},
	{"a word of every 2nd", "/dashboard/jobs?q=in2+invoice"},
	{"a word of every 20th", "/dashboard/jobs?q=in20+invoice"},
	{"a word of every 100th", "/dashboard/jobs?q=in100+invoice"},
	{"a word of every 1,000th", "/dashboard/jobs?q=in1000+invoice"},
	{"a word of the oldest 20th", "/dashboard/jobs?q=retired"},
	{"a word of the older half", "/dashboard/jobs?q=earlier"},
	{"a word of the older half, state", "/dashboard/jobs?q=earlier&status=pending"},
	{"a phrase of none", "/dashboard/jobs?q=" + url.QueryEscape(`"minute within a mail"`)},
	{"without a word of all", "/dashboard/jobs?q=-checkout"},
	{"a word of one", "/dashboard/jobs?q=n77"},
	{"a word of none", "/dashboard/jobs?q=nothing"},
	{"page 20 of a word of all", "/dashboard/jobs?q=checkout&page=20"},
	{"filter: state", "/dashboard/jobs?status=pending"},
	{"filter: state and kind", "/dashboard/jobs?status=pending&kind=payment_flow"},
	{"filter: a verdict that none has", "/dashboard/jobs?verdict=fail"},
	{"filter: days, kind, word", "/dashboard/jobs?from=2020-01-01&kind=general_qa&q=in100"},
	{"palette: three letters", "/dashboard/find?q=che"},
	{"palette: a rare word", "/dashboard/find?q=in1000"},
}

// find is part (k): the time that a person waits for a test among many.
func find(ctx context.Context, b *bench) (section, error) {
	s, err := b.openService(ctx)
	if err != nil {
		return section{}, err
	}
	account, err := s.openPeople(ctx, "watched", finders, plenty)
	if err != nil {
		return section{}, s.ifDead(err)
	}
	if _, err := s.submitEach(ctx, account.key, foundTests, foundTest); err != nil {
		return section{}, s.ifDead(err)
	}
	return s.timePages(ctx, account, "find: search, filters and palette", sought)
}

// timedPage is a page, and what a person looks for there.
type timedPage struct{ what, path string }

// timePages times pages of an account that has just got foundTests.
func (s *service) timePages(ctx context.Context, account peopled, title string, pages []timedPage) (section, error) {
	sessions, err := s.openSessions(ctx, account)
	if err != nil {
		return section{}, s.ifDead(err)
	}
	select {
	case <-time.After(vacuumed):
	case <-ctx.Done():
		return section{}, ctx.Err()
	}
	out := section{
		Title: title,
		Notes: []string{fmt.Sprintf(
			"an account with %d tests; each page %d times a second, timed from when it was due, %s after the last test came; bytes and elements as the browser gets them, unpacked",
			foundTests, findRate, vacuumed)},
	}
	took := max(5*time.Second, s.bench.round)
	var slowest float64
	for _, page := range pages {
		var got sample
		for range 2 { // the first one warms up
			got, err = timedLoop(ctx, findRate, took, func(ctx context.Context, i int) error {
				return s.read(ctx, page.path, sessions[i%len(sessions)], io.Discard)
			})
			if err != nil {
				return section{}, s.ifDead(err)
			}
		}
		out.Measurements = append(out.Measurements, summarise(page.what, "service", []sample{got}))
		slowest = max(slowest, millis(got.quantile(0.99)))
		if slices.Contains([]string{"list", "a phrase of all", "palette: three letters"}, page.what) {
			var body bytes.Buffer
			if err := s.read(ctx, page.path, sessions[0], &body); err != nil {
				return section{}, s.ifDead(err)
			}
			out.Figures = append(out.Figures,
				figure{page.what + ", bytes", float64(body.Len()), ""},
				figure{page.what + ", elements", float64(len(startTag.FindAllIndex(body.Bytes(), -1))), ""})
		}
	}
	out.Goals = []goal{below("the slowest of them in 100,000 tests, p99", slowest, 50, "ms")}
	return out, nil
}

// startTag begins an element of a page.
var startTag = regexp.MustCompile(`<[a-z]`)
