package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"text/tabwriter"
)

// section is the result of one part.
type section struct {
	Part         string        `json:"part"`
	Title        string        `json:"title"`
	Notes        []string      `json:"notes"`
	Measurements []measurement `json:"measurements,omitempty"`
	Figures      []figure      `json:"figures,omitempty"`
	Goals        []goal        `json:"goals"`
}

// figure is a single number.
type figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// goal is a figure with a target.
type goal struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Want    string  `json:"want"` // ">=" or "<"
	Target  float64 `json:"target"`
	Unit    string  `json:"unit,omitempty"`
	Reached bool    `json:"reached"`
}

func atLeast(name string, value, target float64) goal {
	return goal{Name: name, Value: value, Want: ">=", Target: target, Reached: value >= target}
}

func below(name string, value, target float64, unit string) goal {
	return goal{Name: name, Value: value, Want: "<", Target: target, Unit: unit, Reached: value < target}
}

// report prints sections as they come, or all of them as JSON at the end.
type report struct {
	out      io.Writer
	asJSON   bool
	Machine  string    `json:"machine"`
	Warnings []string  `json:"warnings,omitempty"`
	Sections []section `json:"sections"`
	err      error
}

func (r *report) opening(work string) {
	r.Machine = fmt.Sprintf("%d processors, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	r.Warnings = warnings(work)
	if r.asJSON {
		return
	}
	r.printf("%s\n", r.Machine)
	for _, w := range r.Warnings {
		r.printf("WARNING: %s\n", w)
	}
}

func (r *report) add(s section) {
	r.Sections = append(r.Sections, s)
	if !r.asJSON {
		r.print(s)
	}
}

// close prints what is still to be printed and gives the first write error.
func (r *report) close() error {
	if r.asJSON && r.err == nil {
		e := json.NewEncoder(r.out)
		e.SetIndent("", "  ")
		r.err = e.Encode(r)
		return r.err
	}
	missed, goals := 0, 0
	for _, s := range r.Sections {
		for _, g := range s.Goals {
			goals++
			if !g.Reached {
				missed++
			}
		}
	}
	r.printf("\n%d of %d goals reached\n", goals-missed, goals)
	return r.err
}

func (r *report) printf(format string, args ...any) {
	if r.err == nil {
		_, r.err = fmt.Fprintf(r.out, format, args...)
	}
}

func (r *report) print(s section) {
	r.printf("\n(%s) %s\n", s.Part, s.Title)
	for _, note := range s.Notes {
		r.printf("    %s\n", note)
	}
	r.printf("\n")
	if len(s.Measurements) > 0 {
		r.table("\t\tper second\tp50 ms\tp99 ms\t", len(s.Measurements), func(w io.Writer, i int) {
			m, what := s.Measurements[i], s.Measurements[i].What
			if i > 0 && s.Measurements[i-1].What == what {
				what = ""
			}
			writef(w, "%s\t%s\t%s\t%.2f\t%.2f\t\n", what, m.Side, thousands(m.PerSecond), m.P50, m.P99)
		})
	}
	if len(s.Figures) > 0 {
		r.table("", len(s.Figures), func(w io.Writer, i int) {
			f := s.Figures[i]
			writef(w, "%s\t%s\t%s\t\n", f.Name, number(f.Value), f.Unit)
		})
	}
	r.table("goal\tgot\twanted\t\t", len(s.Goals), func(w io.Writer, i int) {
		g := s.Goals[i]
		result := "reached"
		if !g.Reached {
			result = "MISSED"
		}
		writef(w, "%s\t%s\t%s %s\t%s\t\n", g.Name, number(g.Value), g.Want, number(g.Target)+unit(g.Unit), result)
	})
}

// table aligns the rows' cells, which end with tabs.
func (r *report) table(head string, rows int, row func(w io.Writer, i int)) {
	if r.err != nil {
		return
	}
	w := tabwriter.NewWriter(r.out, 0, 0, 3, ' ', 0)
	if head != "" {
		writef(w, "    %s\n", head)
	}
	for i := range rows {
		writef(w, "    ")
		row(w, i)
	}
	writef(w, "\n")
	r.err = w.Flush()
}

// writef leaves errors to the Flush of the table: a tabwriter keeps them.
func writef(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

func unit(u string) string {
	if u == "" {
		return ""
	}
	return " " + u
}

// number shows as many digits as mean something.
func number(v float64) string {
	switch {
	case v >= 1000:
		return thousands(v)
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// thousands writes 12,345.
func thousands(v float64) string {
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
