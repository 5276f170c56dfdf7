package httpapi

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// Each entry's balance is the one before it and its amount, over all pages; the
// newest is what GET /v1/credits says.
func TestTheLedgerAddsUpAtEveryLine(t *testing.T) {
	t.Parallel()
	s := shared(t)
	id, key := s.account(100)
	_, at, err := s.commands.GrantCredits(t.Context(), operator(uuid.New()), id, 7, nil, "=HYPERLINK(1)")
	s.visible(at, err)
	for range 3 {
		s.submitted(key)
	}
	cancelled := s.call(key, "POST", "/v1/jobs", aJob, "X-Request-Id", "the-request").want(http.StatusCreated)["jobId"]
	s.call(key, "POST", fmt.Sprint("/v1/jobs/", cancelled, "/cancel"), "").want(http.StatusOK)

	var all []map[string]any
	after := ""
	for pages := 0; ; pages++ {
		page := s.call(key, "GET", "/v1/credits/ledger?limit=3"+after, "").want(http.StatusOK)
		entries, _ := page["entries"].([]any)
		for _, e := range entries {
			entry, _ := e.(map[string]any)
			all = append(all, entry)
		}
		if page["next"] == nil {
			equal(t, pages, 2)
			break
		}
		after = fmt.Sprint("&after=", page["next"])
	}
	equal(t, len(all), 7)
	balance := 0.0
	for i := len(all) - 1; i >= 0; i-- {
		amount, _ := all[i]["amount"].(float64)
		balance += amount
		equal(t, all[i]["balanceAfter"], any(balance))
	}
	equal(t, s.call(key, "GET", "/v1/credits", "").want(http.StatusOK)["available"], any(balance))
	with(t, all[0], map[string]any{"kind": "refunded", "amount": 5.0, "jobId": cancelled, "jobTitle": "Checkout", "expired": 0.0})
	with(t, all[1], map[string]any{"kind": "debited", "amount": -5.0, "requestId": "the-request", "reason": nil})
	if by, _ := all[1]["by"].(string); !strings.HasPrefix(by, "key:") {
		t.Errorf("it was done by %q", by)
	}
	with(t, all[5], map[string]any{"kind": "granted", "amount": 7.0, "by": "operator", "reason": "=HYPERLINK(1)", "jobId": nil, "requestId": nil})
	lots, _ := all[1]["lots"].([]any)
	if lot, _ := lots[0].(map[string]any); len(lots) != 1 || lot["change"] != -5.0 {
		t.Errorf("it was paid from %v", lots)
	}

	// The statement of this month has the same lines, from the first; that of
	// the next begins with this one's closing balance.
	now := time.Now().UTC()
	r := s.call(key, "GET", "/v1/credits/statement?month="+now.Format("2006-01"), "")
	if r.Code != http.StatusOK || r.Header().Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Fatalf("%d %s", r.Code, r.Body)
	}
	lines, err := csv.NewReader(r.Body).ReadAll()
	if err != nil || len(lines) != 1+1+7+1 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	running := 0
	for i, line := range lines[1:] {
		if amount, err := strconv.Atoi(line[2]); err == nil {
			running += amount
		} else if i != 0 && i != len(lines)-2 {
			t.Errorf("line %d has no amount: %v", i, line)
		}
		equal(t, line[3], strconv.Itoa(running))
	}
	equal(t, lines[3][9], "'=HYPERLINK(1)")
	equal(t, lines[4][2], "-5") // a number stays one
	next := s.call(key, "GET", "/v1/credits/statement?month="+now.AddDate(0, 1, -now.Day()+1).Format("2006-01"), "")
	if !strings.Contains(next.Body.String(), fmt.Sprintf("opening,,%d,", running)) || !strings.Contains(next.Body.String(), fmt.Sprintf("closing,,%d,", running)) {
		t.Errorf("the next month is %s", next.Body)
	}

	rows := strings.Split(s.call(key, "GET", "/v1/credits/statement?format=ndjson", "").Body.String(), "\n")
	if len(rows) != 1+7+1+1 || !strings.Contains(rows[0], `"kind":"opening"`) || !strings.Contains(rows[8], fmt.Sprintf(`"balance":%d`, running)) {
		t.Errorf("as JSON: %v", rows)
	}

	equal(t, s.call(key, "GET", "/v1/credits/statement?month=november&format=xls", "").paths(), []string{"format", "month"})
	equal(t, s.call(key, "GET", "/v1/credits/ledger?after=x&limit=0", "").paths(), []string{"after", "limit"})
	_, other := s.account(1)
	equal(t, len(s.call(other, "GET", "/v1/credits/ledger", "").want(http.StatusOK)["entries"].([]any)), 1)
}
