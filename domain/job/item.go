package job

// ItemStatus is the verdict on one checklist item.
type ItemStatus string

// The verdicts. An unchecked item shows ItemPending.
const (
	ItemPass    ItemStatus = "pass"
	ItemFail    ItemStatus = "fail"
	ItemSkip    ItemStatus = "skip"
	ItemPending ItemStatus = "pending"
)

// Severity of a checklist item or a finding.
type Severity string

// The severities, gravest first.
const (
	Critical Severity = "critical"
	Major    Severity = "major"
	Minor    Severity = "minor"
)

// Item is one thing to check. Key is stable across the project's tests.
type Item struct {
	ID              string   `json:"id"`
	Key             string   `json:"key"`
	Description     string   `json:"description" sealed:"text"`
	ExpectedOutcome string   `json:"expectedOutcome,omitempty" sealed:"text"`
	Severity        Severity `json:"severity"`
	// Origin is the reason that the project's past put the item here; empty without one.
	Origin Origin `json:"origin,omitempty"`
}

// Origin is the source of a regression item (decisions, "Open failures" and
// "prepare-next").
type Origin string

// The origins.
const (
	OpenFailure Origin = "open_failure" // its latest result in the project is fail
	PreparedFix Origin = "prepared_fix" // queued by prepare-next
)
