package ai

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sirupsen/logrus"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/fence"
)

// Model asks a language model, and has the rules finish what it cannot do. It
// may be used by many goroutines.
type Model struct {
	*Rules // review pages: there is nothing to ask a model, and the text of a page never reaches one
	chat   *chat
	name   string
	log    logrus.FieldLogger
	// failed is called when the rules take over.
	failed func(task string)
}

func newModel(cfg Config, rules *Rules) *Model {
	m := &Model{Rules: rules, chat: newChat(cfg), name: cfg.Model, log: cfg.Log, failed: cfg.Failed}
	if m.failed == nil {
		m.failed = func(string) {}
	}
	return m
}

// Instant implements command.AI.
func (*Model) Instant() bool { return false }

// Checklist implements command.AI.
func (m *Model) Checklist(ctx context.Context, b command.ChecklistBrief) ([]command.NewItem, string, error) {
	if b.Type.Automatic() {
		return m.Rules.Checklist(ctx, b) // the list that Review can judge
	}
	var items []command.NewItem
	err := m.chat.ask(ctx, question{
		account: b.AccountID, task: checklistTask, data: checklistPrompt(b), schema: checklistSchema,
		read: func(answer string) (err error) {
			items, err = readChecklist(answer, b)
			return err
		},
	})
	if err == nil {
		return items, m.name, nil
	}
	if err := m.giveUp(ctx, checklistWork, b.AccountID, err); err != nil {
		return nil, "", err
	}
	return m.Rules.Checklist(ctx, b)
}

// Analyse implements command.AI.
func (m *Model) Analyse(ctx context.Context, b command.AnalysisBrief) (job.AIReport, error) {
	var report job.AIReport
	err := m.chat.ask(ctx, question{
		account: b.AccountID, task: analysisTask, data: analysisPrompt(b), schema: analysisSchema,
		read: func(answer string) (err error) {
			report, err = readAnalysis(answer, b)
			return err
		},
	})
	if err == nil {
		report.GeneratedBy = m.name
		return report, nil
	}
	if err := m.giveUp(ctx, analysisWork, b.AccountID, err); err != nil {
		return job.AIReport{}, err
	}
	return m.Rules.Analyse(ctx, b)
}

// giveUp logs why the rules take over. It fails where no caller waits any more. The
// reason holds no text of the server or of a user.
func (m *Model) giveUp(ctx context.Context, what, account string, reason error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("ask the model: %w", context.Cause(ctx))
	}
	m.log.WithFields(logrus.Fields{"what": what, "account": account, "model": m.name}).
		WithError(reason).Warn("the model did not do it, the rules do")
	m.failed(what)
	return nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errMalformed, fmt.Sprintf(format, args...))
}

// fits cleans a text of the model. It says whether the text is not empty and has at most
// limit characters.
func fits(text *string, limit int) bool {
	whole := fence.Clean(*text, limit+1)
	*text = whole
	return whole != "" && len([]rune(whole)) <= limit
}

func allFit(texts []string, count, limit int) bool {
	if len(texts) > count {
		return false
	}
	for i := range texts {
		if !fits(&texts[i], limit) {
			return false
		}
	}
	return true
}

// readChecklist takes a whole list or none. Items that the failures bring anyway, or that
// come twice, are left out, and the rules fill up a list that is then too short.
func readChecklist(answer string, b command.ChecklistBrief) ([]command.NewItem, error) {
	var written struct {
		Items []struct {
			Description     string
			ExpectedOutcome string
			Severity        job.Severity
		}
	}
	if err := checklistSchema.decode(answer, &written); err != nil {
		return nil, err
	}
	if n := len(written.Items); n < minItems || n > maxItems {
		return nil, malformed("%d items", n)
	}
	list := newChecklist(b.Opening)
	for i, w := range written.Items {
		if !fits(&w.Description, maxItemText) || !fits(&w.ExpectedOutcome, maxItemText) {
			return nil, malformed("item %d is blank or too long", i)
		}
		list.addWritten(item{w.Description, w.ExpectedOutcome, w.Severity})
	}
	for _, i := range checklistByRules(b) {
		list.addItems(minItems, item{i.Description, i.ExpectedOutcome, i.Severity})
	}
	return list.items, nil
}

// readAnalysis puts the model's words into the report that the rules have
// made. Verdict, counts, score, which bugs there are and how grave they are
// stay the checker's.
func readAnalysis(answer string, b command.AnalysisBrief) (job.AIReport, error) {
	var written struct {
		ExecutiveSummary string
		Bugs             []struct {
			ItemID            string
			Title             string
			Description       string
			ReproductionSteps []string
			SuggestedFix      string
		}
		Strengths       []string
		Recommendations []string
	}
	if err := analysisSchema.decode(answer, &written); err != nil {
		return job.AIReport{}, err
	}
	report := analysisByRules(b)
	asked := make(map[string]bool)
	for _, i := range failuresShown(b) {
		asked[i.ID] = true
	}
	for n, w := range written.Bugs {
		if !asked[w.ItemID] {
			return job.AIReport{}, malformed("bug %d is about no failed item, or one of another bug", n)
		}
		delete(asked, w.ItemID)
		if !fits(&w.Title, maxTitle) || !fits(&w.Description, maxBugText) || !fits(&w.SuggestedFix, maxFix) ||
			len(w.ReproductionSteps) == 0 || !allFit(w.ReproductionSteps, maxSteps, maxStep) {
			return job.AIReport{}, malformed("bug %d is incomplete or too long", n)
		}
		for i := range report.Bugs {
			if bug := &report.Bugs[i]; bug.ItemID == w.ItemID {
				bug.Title, bug.Description = w.Title, w.Description
				bug.ReproductionSteps, bug.SuggestedFix = w.ReproductionSteps, w.SuggestedFix
			}
		}
	}
	if !fits(&written.ExecutiveSummary, maxModelSummary) ||
		!allFit(written.Strengths, maxPoints, maxPoint) || !allFit(written.Recommendations, maxPoints, maxPoint) {
		return job.AIReport{}, malformed("its summary, strengths or recommendations are blank or too long")
	}
	report.ExecutiveSummary = strings.Join([]string{headline(b), written.ExecutiveSummary}, " ")
	if report.PassCount > 0 && len(written.Strengths) > 0 {
		report.Strengths = written.Strengths
	}
	if len(written.Recommendations) > 0 {
		report.Recommendations = written.Recommendations
	}
	return report, nil
}
