package job

import (
	"slices"
	"time"

	"humanqa/domain"
)

// Erased takes the job's texts, pictures and recordings away for good, by an operator's
// order (decisions, "Erasure of one subject"). Verdicts, counts, credits and times stay.
// The key of the texts is destroyed behind it.
type Erased struct {
	By     string    `json:"by"` // the operator's name
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// EventType implements domain.Event.
func (*Erased) EventType() string { return "job.erased" }

func errErased() error { return domain.Conflict("the job was erased") }

// DecideErase erases a job that has ended. A repeat changes nothing.
func DecideErase(s State, by, reason string, now time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case !s.ErasedAt.IsZero():
		return nil, nil
	case !s.Status.Ended():
		return nil, domain.Conflict("the job is %s", s.Status).WithHint("end it first")
	}
	if err := domain.OrderOfErasure(by, reason); err != nil {
		return nil, err
	}
	return []domain.Event{&Erased{By: by, Reason: reason, At: now}}, nil
}

// ErasedSubmission is what is left of what was asked for.
func (s Submission) ErasedSubmission() Submission {
	for _, text := range []*string{
		&s.URL, &s.Title, &s.Description, &s.Feature, &s.Branch, &s.Environment,
		&s.Target.Device, &s.Target.OS, &s.Target.Browser, &s.Target.ScreenSize, &s.Target.Network,
	} {
		*text = domain.Erased(*text)
	}
	return s
}

// ErasedItems are the items with their ids, keys and verdicts, without texts and pictures.
// The list that is given is left as it is.
func ErasedItems(items []ReportItem) []ReportItem {
	items = slices.Clone(items)
	for i := range items {
		item := &items[i]
		item.Item = item.erased()
		item.Note = domain.Erased(item.Note)
		item.ScreenshotURL, item.MoreScreenshotURLs = "", nil
	}
	return items
}

func (i Item) erased() Item {
	i.Description, i.ExpectedOutcome = domain.Erased(i.Description), domain.Erased(i.ExpectedOutcome)
	return i
}

// ErasedQuestions are the questions with their kinds and times.
func ErasedQuestions(questions []Question) []Question {
	questions = slices.Clone(questions)
	for i := range questions {
		q := &questions[i]
		q.Text, q.Answer, q.Sealed = domain.Erased(q.Text), domain.Erased(q.Answer), ""
	}
	return questions
}

// Erased is the analysis with its figures.
func (r AIReport) Erased() AIReport {
	all := func(texts []string) []string {
		texts = slices.Clone(texts)
		for i := range texts {
			texts[i] = domain.Erased(texts[i])
		}
		return texts
	}
	r.ExecutiveSummary = domain.Erased(r.ExecutiveSummary)
	r.Strengths, r.Recommendations = all(r.Strengths), all(r.Recommendations)
	r.Bugs = slices.Clone(r.Bugs)
	for i := range r.Bugs {
		b := &r.Bugs[i]
		b.Title, b.Description, b.SuggestedFix = domain.Erased(b.Title), domain.Erased(b.Description), domain.Erased(b.SuggestedFix)
		b.ReproductionSteps = all(b.ReproductionSteps)
	}
	return r
}

// erase changes nothing that the state shares with events.
func (s *State) erase(e *Erased) {
	s.ErasedAt = e.At
	s.Submission = s.ErasedSubmission()
	s.Credentials, s.AccessInstructions = "", ""
	for _, list := range []*[]Item{&s.Items, &s.Regressions} {
		*list = slices.Clone(*list)
		for i, item := range *list {
			(*list)[i] = item.erased()
		}
	}
	s.FailNote = domain.Erased(s.FailNote)
	s.Verdicts, s.Findings, s.Moments, s.Recordings = nil, nil, nil, nil
	s.Questions = ErasedQuestions(s.Questions)
	if s.Report != nil {
		report := *s.Report
		report.Summary, report.RecordingURL, report.Items = domain.Erased(report.Summary), "", ErasedItems(report.Items)
		s.Report = &report
	}
	if s.AIReport != nil {
		report := s.AIReport.Erased()
		s.AIReport = &report
	}
	if s.Rating != nil {
		rating := *s.Rating
		rating.Note = domain.Erased(rating.Note)
		s.Rating = &rating
	}
	if s.CommitStatus != nil {
		told := *s.CommitStatus
		told.CommitStatus = told.Erased()
		s.CommitStatus = &told
	}
}

// Erased is a commit status of a job that was erased: nothing more is told there.
func (c CommitStatus) Erased() CommitStatus {
	c.Repository, c.Context, c.Ref = domain.Erased(c.Repository), domain.Erased(c.Context), domain.Erased(c.Ref)
	return c
}
