package events

import (
	"regexp"
	"strconv"
	"strings"

	"humanqa/domain"
)

// place is a position as Postgres compares it.
type place struct{ commit, prepare int64 }

// A cursor is a position, and the mark of the log's generation that it is of
// (origin.Lineage). Cursors from before marks have none.
var cursorPattern = regexp.MustCompile(`^(0|[1-9][0-9]{0,18})-(0|[1-9][0-9]{0,18})(\.[0-9a-f]{8})?$`)

// CursorAt is the cursor of a position, without a mark.
func CursorAt(p domain.Position) string {
	return strconv.FormatUint(p.Commit, 10) + "-" + strconv.FormatUint(p.Prepare, 10)
}

// Marked is a cursor of the generation with that mark; an empty mark leaves it as it is.
func Marked(cursor, mark string) string {
	if cursor == "" || mark == "" {
		return cursor
	}
	plain, _, _ := strings.Cut(cursor, ".")
	return plain + "." + mark
}

// IsCursor says whether the text is a cursor, or empty.
func IsCursor(s string) bool {
	_, _, ok := SplitCursor(s)
	return ok || s == ""
}

// SplitCursor gives a cursor's position and its mark.
func SplitCursor(s string) (at domain.Position, mark string, ok bool) {
	if !cursorPattern.MatchString(s) {
		return at, "", false
	}
	plain, mark, _ := strings.Cut(s, ".")
	commit, prepare, _ := strings.Cut(plain, "-")
	c, errCommit := strconv.ParseInt(commit, 10, 64)
	p, errPrepare := strconv.ParseInt(prepare, 10, 64)
	if errCommit != nil || errPrepare != nil {
		return at, "", false
	}
	return domain.Position{Commit: uint64(c), Prepare: uint64(p)}, mark, true
}

// LaterCursor is the later of two cursors.
func LaterCursor(a, b string) string {
	pa, _, okA := SplitCursor(a)
	pb, _, okB := SplitCursor(b)
	switch {
	case a == "":
		return b
	case b == "", !okB, okA && pa.Compare(pb) >= 0:
		return a
	}
	return b
}

// parseCursor reads the position of a cursor; empty is before the first event.
func parseCursor(s string) (place, error) {
	if s == "" {
		return place{-1, -1}, nil
	}
	at, _, ok := SplitCursor(s)
	if !ok {
		return place{}, domain.Invalid(domain.Detail{Path: "after", Message: "must be a cursor of this feed"})
	}
	return place{int64(at.Commit), int64(at.Prepare)}, nil
}
