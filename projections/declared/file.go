package declared

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"humanqa/eventstore"
)

// File is a declared projection, as its author writes it.
type File struct {
	Name    string
	Version int
	Events  []string
	Serve   Serve

	text   string
	unread error // nil: it could be read
	tables []statement
	names  []string // of the tables
	apply  statement
}

// Serve says which rows accounts get by the API: those of a table with a column account_id.
type Serve struct {
	Table   string   `yaml:"table"` // empty: none
	Columns []string `yaml:"columns"`
	Order   []string `yaml:"order"` // columns, together without ties
}

// statement is SQL, and the line of the file that it begins at.
type statement struct {
	sql  string
	line int
}

const (
	maxFile    = 64 << 10
	maxVersion = 9999
)

var (
	nameForm  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,29}$`)
	tableForm = regexp.MustCompile(`(?i)^\s*CREATE\s+TABLE\s+([a-z][a-z0-9_]*)\s*\(`)
	indexForm = regexp.MustCompile(`(?i)^\s*CREATE\s+(UNIQUE\s+)?INDEX\s`)
	blank     = regexp.MustCompile(`^(\s|--.*)*$`)
	// end is that of a statement.
	end = regexp.MustCompile(`(?m);[ \t]*$`)
)

// Parse reads a file. Postgres judges the SQL later (Check).
func Parse(text []byte) (File, error) {
	var in struct {
		Name    string    `yaml:"name"`
		Version int       `yaml:"version"`
		Events  []string  `yaml:"events"`
		Tables  yaml.Node `yaml:"tables"`
		Apply   yaml.Node `yaml:"apply"`
		Serve   Serve     `yaml:"serve"`
	}
	if len(text) > maxFile {
		return File{}, fmt.Errorf("the file has %d bytes, of at most %d", len(text), maxFile)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&in); err != nil {
		return File{}, fmt.Errorf("read the file: %w", err)
	}
	f := File{Name: in.Name, Version: in.Version, Events: in.Events, Serve: in.Serve, text: string(text)}
	for i, e := range f.Events {
		if eventstore.Version(e) == 0 || slices.Contains(f.Events[:i], e) {
			return f, fmt.Errorf("events: %q is no event, or is there twice: docs/event-zero.md lists them", e)
		}
	}
	switch f.apply = sqlOf(in.Apply); {
	case !nameForm.MatchString(f.Name):
		return f, fmt.Errorf("name: %q must be lower-case letters, digits and _, at most 30, and begin with a letter", f.Name)
	case f.Version < 1 || f.Version > maxVersion:
		return f, fmt.Errorf("version: %d must be from 1 to %d", f.Version, maxVersion)
	case len(f.Events) == 0:
		return f, errors.New("events: name at least one type")
	case strings.TrimSpace(f.apply.sql) == "":
		return f, errors.New("apply: SQL is missing")
	}
	if err := f.readTables(sqlOf(in.Tables)); err != nil {
		return f, err
	}
	return f, f.checkServe()
}

// sqlOf is the SQL of a field. A block begins on the line behind its mark.
func sqlOf(n yaml.Node) statement {
	s := statement{n.Value, n.Line}
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		s.line++
	}
	return s
}

// readTables takes the statements that make the tables, each up to a line's end with a semicolon.
func (f *File) readTables(all statement) error {
	for rest, line := all.sql, all.line; rest != ""; {
		one, behind := rest, ""
		if at := end.FindStringIndex(rest); at != nil {
			one, behind = rest[:at[0]], rest[at[1]:]
		}
		begins := len(one) - len(strings.TrimLeft(one, " \t\n"))
		s := statement{one[begins:], line + strings.Count(one[:begins], "\n")}
		line += strings.Count(rest[:len(rest)-len(behind)], "\n")
		rest = behind
		table := tableForm.FindStringSubmatch(s.sql)
		switch {
		case blank.MatchString(s.sql):
			continue
		case table != nil:
			f.names = append(f.names, strings.ToLower(table[1]))
			s.sql += "\nWITH (fillfactor = 70)" // see the package's comment
		case !indexForm.MatchString(s.sql):
			return fmt.Errorf("line %d: tables: only CREATE TABLE name (…) and CREATE INDEX may stand here", s.line)
		}
		f.tables = append(f.tables, s)
	}
	if len(f.names) == 0 {
		return errors.New("tables: CREATE TABLE is missing")
	}
	return nil
}

func (f *File) checkServe() error {
	s := f.Serve
	if s.Table == "" && len(s.Columns)+len(s.Order) == 0 {
		return nil
	}
	if !slices.Contains(f.names, s.Table) {
		return fmt.Errorf("serve: table: there is no table %q", s.Table)
	}
	if len(s.Columns) == 0 || len(s.Order) == 0 {
		return errors.New("serve: name the columns, and the columns of their order")
	}
	for _, c := range slices.Concat(s.Columns, s.Order) {
		if !nameForm.MatchString(c) {
			return fmt.Errorf("serve: %q is no name of a column", c)
		}
	}
	return nil
}
