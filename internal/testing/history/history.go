// Package history records the calls of clients with their beginnings and ends. It then looks
// for an order of the calls that explains all answers: one job, and one ledger, on which the
// calls act one at a time (linearizability). Porcupine does the search.
//
// A call without an answer may have had its effect at any time after it began, or never.
// So it stays open to the end of the history.
//
// The log decides a write, and a read shows the read models, which follow the log. The
// model is the promise itself (decisions, "A read after a write"). A write that is
// answered must be visible before its answer: it owes its visibility. A refusal owes none.
// An answer that went out before the read models had caught up owes none; the service's log
// names its request. Reads never go back, because all processes read one database.
package history

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kind is the kind of a call.
type Kind string

// The kinds.
const (
	Submit      Kind = "submit"
	Cancel      Kind = "cancel"
	Claim       Kind = "claim"
	Release     Kind = "release"
	Complete    Kind = "complete"
	ReadJob     Kind = "read"
	ReadCredits Kind = "credits"
)

// Outcome is the part of an answer that a model knows.
type Outcome string

// The outcomes. Unknown is a broken connection, no answer in time, or a 5xx.
const (
	Unknown   Outcome = "unknown"
	Done      Outcome = "done"
	Refused   Outcome = "refused"
	Absent    Outcome = "absent"    // 404: the read models do not show the job
	Short     Outcome = "short"     // 402
	Abandoned Outcome = "abandoned" // the policy gave the submission's charge back
)

// Call is one attempt of a client. Times are nanoseconds of one clock.
type Call struct {
	Kind       Kind
	Client     int
	Account    string // of clients' calls
	Job        string // empty for a submission without its answer
	Key        string // the Idempotency-Key of a submission: its attempts have one effect
	Checker    string
	Token      int    // of a claim: sent, or from the answer
	Request    string // its X-Request-Id, one for all repeats
	Begin, End int64
	Outcome    Outcome

	Status          string // of a job that was read
	Used, Available int    // of credits that were read
	Lacking         int    // creditsShort of a 402
}

// History is all calls of a run. It is safe for concurrent use.
type History struct {
	Price int // of each job

	mu      sync.Mutex
	calls   []Call
	granted map[string]int // by account
	ended   map[string]string
	gave    map[string]bool
}

// New makes a history of jobs with one price.
func New(price int) *History {
	return &History{Price: price, granted: map[string]int{}, ended: map[string]string{}, gave: map[string]bool{}}
}

// Open notes an account with its grant, which came before all calls.
func (h *History) Open(account string, granted int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.granted[account] = granted
}

// End notes the state of a job after all calls. A cancel without an answer had no effect on
// a job that was not cancelled at its end, which shortens the search.
func (h *History) End(job, status string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended[job] = status
}

// GaveBack notes that the log has a charge of the account that the policy gave back. A slow
// submission may then have been charged, refunded and charged again.
func (h *History) GaveBack(account string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gave[account] = true
}

// Add notes a call that has ended.
func (h *History) Add(c Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
}

// Calls is how many calls were added.
func (h *History) Calls() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.calls)
}

// Fault is a part of the history that no order explains.
type Fault struct {
	Name string
	Of   string // the job, or the account
	Why  string

	model porcupine.Model
	info  porcupine.LinearizationInfo
}

// checkTime bounds the search for the order of one job or ledger.
const checkTime = 30 * time.Second

// Faults are the jobs and ledgers that no order explains. late says that a request was
// answered before the read models had caught up.
func (h *History) Faults(late func(request string) bool) (faults []Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	jobs, accounts := map[string][]Call{}, map[string][]Call{}
	for _, s := range h.submissions() {
		if s.fault != "" {
			faults = append(faults, Fault{Name: s.Account + " key " + s.Key, Of: s.Account, Why: s.fault})
		}
		accounts[s.Account] = append(accounts[s.Account], s.Call)
		if s.Outcome == Done {
			jobs[s.Job] = append(jobs[s.Job], s.Call)
		}
	}
	for _, c := range h.calls {
		switch c.Kind {
		case Submit:
		case ReadCredits:
			accounts[c.Account] = append(accounts[c.Account], c)
		case Cancel:
			accounts[c.Account] = append(accounts[c.Account], c)
			jobs[c.Job] = append(jobs[c.Job], c)
		default:
			jobs[c.Job] = append(jobs[c.Job], c)
		}
	}
	for job, calls := range jobs {
		if created := slices.ContainsFunc(calls, func(c Call) bool { return c.Kind == Submit }); !created {
			continue // no client knows the job; the test looks for such jobs by itself
		}
		faults = append(faults, check("job ", job, jobModel(), jobOperations(calls, late))...)
	}
	for account, calls := range accounts {
		model := ledgerModel(h.granted[account], h.Price)
		faults = append(faults, check("ledger of ", account, model, h.ledgerOperations(account, calls, late))...)
	}
	slices.SortFunc(faults, func(a, b Fault) int { return cmp.Compare(a.Name, b.Name) })
	return faults
}

func check(kind, of string, model porcupine.Model, ops []porcupine.Operation) []Fault {
	switch porcupine.CheckOperationsTimeout(model, ops, checkTime) {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		why := fmt.Sprintf("no order was found or excluded within %s: %d operations", checkTime, len(ops))
		return []Fault{{Name: kind + of, Of: of, Why: why}}
	}
	_, info := porcupine.CheckOperationsVerbose(model, ops, checkTime)
	return []Fault{{Name: kind + of, Of: of, Why: "no order of the calls explains the answers", model: model, info: info}}
}

// Check fails the test for each fault, and draws it in the folder, which it makes.
func (h *History) Check(t testing.TB, folder string, late func(request string) bool) []Fault {
	t.Helper()
	faults := h.Faults(late)
	for _, f := range faults {
		t.Errorf("%s: %s", f.Name, f.Why)
		if f.model.Init == nil {
			continue
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Errorf("draw %s: %v", f.Name, err)
			continue
		}
		path := filepath.Join(folder, strings.ReplaceAll(f.Name, " ", "-")+".html")
		if err := porcupine.VisualizePath(f.model, f.info, path); err != nil {
			t.Errorf("draw %s: %v", f.Name, err)
			continue
		}
		t.Logf("%s is drawn in %s", f.Name, path)
	}
	return faults
}

// submission is all attempts under one Idempotency-Key as one call: it has one effect, and
// one answer.
type submission struct {
	Call
	fault string
}

func (h *History) submissions() (all []*submission) {
	byKey := map[string]*submission{}
	attempts := slices.Clone(h.calls)
	slices.SortStableFunc(attempts, func(a, b Call) int { return cmp.Compare(a.End, b.End) })
	for _, c := range attempts {
		if c.Kind != Submit {
			continue
		}
		at := c.Account + "\x00" + c.Key
		s := byKey[at]
		if s == nil {
			s = &submission{Call: c}
			byKey[at] = s
			all = append(all, s)
			continue
		}
		first := min(s.Begin, c.Begin)
		switch {
		case c.Outcome == Unknown:
		case s.Outcome == Unknown:
			s.Call = c
		case s.Outcome != c.Outcome || s.Job != c.Job:
			s.fault = fmt.Sprintf("was answered as %s (%s) and as %s (%s)", s.Outcome, s.Job, c.Outcome, c.Job)
		}
		s.Begin = first
	}
	return all
}

// open is the end of a call that may take effect at any time.
const open = math.MaxInt64

// operation makes an operation of a call.
func operation(c Call, in step) porcupine.Operation {
	in.Call = c
	end := c.End
	if c.Outcome == Unknown {
		end = open
	}
	return porcupine.Operation{ClientId: c.Client, Input: in, Call: c.Begin, Output: nil, Return: end}
}

// step is one operation of a model: a call, or a part of one.
type step struct {
	Call
	part part
	id   int // of the write that owes its visibility, and of its visibility
}

// part says which part of a call a step is.
type part string

const (
	whole  part = ""
	shows  part = "shows"  // the read models show the write
	refund part = "refund" // of a cancelled job
	void   part = "void"   // the policy gave the charge back
	again  part = "again"  // and the repeat charged again
)
