package fsck

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"humanqa/cmd/humanqa/service/logging"
	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/eventstore/consumer"
)

// rowLines bounds the lines about one row.
const rowLines = 9

// RowFindings reports the rows that differ between a read model and the fold of the log.
// Where both have a row of that key, it names the fields that differ.
func RowFindings(name string, differences []consumer.Difference) []audit.Finding {
	type row struct{ table, key string }
	var order []row
	both := map[row][2]map[string]json.RawMessage{} // the read model's, the fold's
	for _, d := range differences {
		var columns map[string]json.RawMessage
		if json.Unmarshal([]byte(d.Row), &columns) != nil {
			continue // it was written by Postgres
		}
		of := row{d.Table, d.Key}
		pair, seen := both[of]
		if !seen {
			order = append(order, of)
		}
		if d.InFold {
			pair[1] = columns
		} else {
			pair[0] = columns
		}
		both[of] = pair
	}
	var found []audit.Finding
	for _, of := range order {
		is, should := both[of][0], both[of][1]
		f := audit.Finding{Invariant: 9, Stream: streamOf(name, is, should)}
		switch {
		case should == nil:
			f.Problem = fmt.Sprintf("the read model %s has a row of %s that the fold of the log lacks: %s", name, of.table, of.key)
		case is == nil:
			f.Problem = fmt.Sprintf("the fold of the log has a row of %s that the read model %s lacks: %s", of.table, name, of.key)
		default:
			f.Problem = fmt.Sprintf("the read model %s has a row of %s that is not the fold's: %s%s", name, of.table, of.key,
				fieldsOf(is, should))
		}
		found = append(found, f)
	}
	return found
}

// fieldsOf is a line for each field that differs.
func fieldsOf(is, should map[string]json.RawMessage) string {
	var lines []string
	for _, field := range slices.Sorted(maps.Keys(should)) {
		if string(is[field]) != string(should[field]) {
			lines = append(lines, fmt.Sprintf("\n  %s: is %s, the log says %s", field, shortened(is[field]), shortened(should[field])))
		}
	}
	if more := len(lines) - rowLines; more > 0 {
		lines = append(lines[:rowLines-1], fmt.Sprintf("\n  and %d more fields", more+1))
	}
	return strings.Join(lines, "")
}

// shortened cuts a value so that it fits into a line.
func shortened(value json.RawMessage) string {
	const most = 120
	text := []rune(logging.OneLine(string(value)))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// streamOf is the stream of a row of a read model; the read model's name where the row
// does not name a stream.
func streamOf(name string, rows ...map[string]json.RawMessage) string {
	own := map[string]string{
		"jobs": domain.JobStreams, "projects": domain.ProjectStreams, "sessions": domain.SessionStreams,
	}
	for _, row := range rows {
		value := func(column string) (s string) {
			if json.Unmarshal(row[column], &s) != nil {
				return ""
			}
			return s
		}
		id, category := value("id"), own[name]
		switch {
		case value("stream") != "":
			return value("stream")
		case category != "" && id != "":
			return category + id
		case value("job_id") != "" && name != "ledger":
			return domain.JobStream(value("job_id"))
		case value("account_id") != "" && (name == "ledger" || name == "credits"):
			return domain.CreditsStream(value("account_id"))
		case value("project_id") != "":
			return domain.ProjectStream(value("project_id"))
		}
	}
	return name
}
