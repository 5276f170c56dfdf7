package job

import (
	"slices"
	"strings"
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

// Types lists every job type, the five of the hosted endpoints first.
func Types() []Type {
	return []Type{
		FirstImpression, GeneralQA, PaymentFlow, Custom, AIReview,
		AuthFlow, FormSubmission, MobileResponsive, FullUserStory,
	}
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
