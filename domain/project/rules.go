package project

import (
	"fmt"
	"slices"
	"strings"

	"humanqa/domain"
	"humanqa/domain/subscription"
)

// SLAMinutes lists the allowed SLAs.
func SLAMinutes() []int { return []int{15, 30, 60} }

// invalid gathers every offending path of a command.
type invalid struct{ domain.Wrong }

func (w *invalid) name(name string) {
	w.AddIf(strings.TrimSpace(name) == "", "name", "must not be blank")
}

func (w *invalid) sla(minutes *int) {
	w.AddIf(minutes != nil && !slices.Contains(SLAMinutes(), *minutes), "defaultSlaMinutes", "must be 15, 30 or 60")
}

// MaxQuestionMinutes is the longest that a project may let a checker's question wait.
const MaxQuestionMinutes = 60

func (w *invalid) questions(minutes *int) {
	w.AddIf(minutes != nil && (*minutes < 0 || *minutes > MaxQuestionMinutes),
		"questionMinutes", "must be 0 to %d; 0 switches questions off", MaxQuestionMinutes)
}

func (w *invalid) events(list *[]string) {
	if list == nil {
		return
	}
	for i, name := range *list {
		w.AddIf(!slices.Contains(subscription.Names(), name),
			fmt.Sprintf("subscribedWebhookEvents[%d]", i), "must be one of %s", strings.Join(subscription.Names(), ", "))
	}
}
