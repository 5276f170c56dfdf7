package job

import (
	"slices"
	"strings"

	"humanqa/domain"
)

// Type is a job type's canonical code (decisions, "Job types").
type Type string

// The job types.
const (
	FirstImpression  Type = "first_impression"
	GeneralQA        Type = "general_qa"
	PaymentFlow      Type = "payment_flow"
	Custom           Type = "custom"
	AIReview         Type = "ai_review"
	AuthFlow         Type = "auth_flow"
	FormSubmission   Type = "form_submission"
	MobileResponsive Type = "mobile_responsive"
	FullUserStory    Type = "full_user_story"
)

// kind holds all that is fixed for a type.
type kind struct {
	code      Type
	title     string // the specification's spelling
	credits   domain.Credits
	hosted    bool   // the hosted endpoints take it
	automatic bool   // the service does the test, without a checker
	analysis  string // its name in an analysis
}

// kinds has a row for each type, in the order of every list of types.
var kinds = []kind{
	{code: FirstImpression, title: "First Impression", credits: 5, hosted: true, analysis: "first impression test"},
	{code: GeneralQA, title: "General QA", credits: 5, hosted: true, analysis: "general test"},
	{code: PaymentFlow, title: "Payment Flow", credits: 5, hosted: true, analysis: "payment test"},
	{code: Custom, title: "Custom", credits: 5, hosted: true, analysis: "custom test"},
	{code: AIReview, title: "AI Review", credits: 2, hosted: true, automatic: true, analysis: "automatic review"},
	{code: AuthFlow, title: "Auth Flow", credits: 5, analysis: "sign-in test"},
	{code: FormSubmission, title: "Form Submission", credits: 5, analysis: "form test"},
	{code: MobileResponsive, title: "Mobile Responsive", credits: 5, analysis: "mobile test"},
	{code: FullUserStory, title: "Full User Story", credits: 5, analysis: "user story test"},
}

// kind is the type's row. A type of a newer version has none here.
func (t Type) kind() kind {
	if i := slices.IndexFunc(kinds, func(k kind) bool { return k.code == t }); i >= 0 {
		return kinds[i]
	}
	return kind{code: t, title: string(t), credits: GeneralQA.kind().credits, analysis: "test"}
}

// Types lists every job type.
func Types() []Type { return typesOf(kinds) }

// HostedTypes lists the types that the hosted endpoints take.
func HostedTypes() []Type {
	return typesOf(slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !k.hosted }))
}

func typesOf(kinds []kind) []Type {
	types := make([]Type, len(kinds))
	for i, k := range kinds {
		types[i] = k.code
	}
	return types
}

// Title is the specification's spelling of the type, such as "Payment Flow".
func (t Type) Title() string { return t.kind().title }

// Automatic says that the service does the test, without a checker.
func (t Type) Automatic() bool { return t.kind().automatic }

// Analysis is the type's name in an analysis, such as "payment test".
func (t Type) Analysis() string { return t.kind().analysis }

// Price is the price of one job (decisions, "Prices"). Urgent is exactly twice the
// normal price.
func (t Type) Price(urgent bool) domain.Credits {
	price := t.kind().credits
	if urgent {
		price *= 2
	}
	return price
}

// ParseType accepts both spellings ("Payment Flow", "payment_flow"), in any
// case.
func ParseType(s string) (Type, bool) {
	code := Type(strings.ToLower(strings.ReplaceAll(strings.TrimSpace(s), " ", "_")))
	if !slices.Contains(Types(), code) {
		return "", false
	}
	return code, true
}

// ParseSeverity accepts the three severities and their usual synonyms, in any
// case; empty means major (decisions, "Severity").
func ParseSeverity(s string) (Severity, bool) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "critical":
		return Critical, true
	case "", "major", "high":
		return Major, true
	case "minor", "medium", "low":
		return Minor, true
	}
	return "", false
}

func (s Severity) known() bool { return s == Critical || s == Major || s == Minor }
