package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"humanqa/domain"
)

// The bounds of questions (decisions, "Questions").
const (
	// MaxQuestions is how many questions one claim may ask.
	MaxQuestions = 5
	// QuestionWait is how long one question waits, unless its project says otherwise.
	QuestionWait = 30 * time.Minute
	// MaxQuestionWait is how long all questions of a job may wait together.
	MaxQuestionWait = time.Hour
	// AnswerLeaves is how long the checker has for the answer, and for the rest of the test,
	// even where the question was asked in the last moment.
	AnswerLeaves = 5 * time.Minute
)

// QuestionKinds lists the subjects that a question may have.
func QuestionKinds() []string { return []string{"code", "access", "meaning", "other"} }

// The reasons for which a question is closed without an answer.
const (
	QuestionUnanswered = "unanswered"  // its time ran out
	QuestionClaimEnded = "claim_ended" // the claim of the checker that asked ended first
)

// The states of a question.
const (
	QuestionOpen     = "open"
	QuestionAnswered = "answered"
)

// Question is a claimant's question to the client, and its answer. Status is open,
// answered, or the reason for which it was closed.
type Question struct {
	ID       string    `json:"id"`
	ItemID   string    `json:"itemId,omitempty"` // of the list; empty: about the whole test
	Kind     string    `json:"kind"`
	Text     string    `json:"text" sealed:"text"`
	Token    int       `json:"token"` // of the claim that asked
	AskedAt  time.Time `json:"askedAt"`
	Until    time.Time `json:"until"` // the end of its wait
	Status   string    `json:"status"`
	Answer   string    `json:"answer,omitempty" sealed:"text"`
	ClosedAt time.Time `json:"closedAt,omitzero"` // answered or closed
	// HasSecret says that a secret came with the answer. Sealed is the secret; a read
	// model never holds it.
	HasSecret bool   `json:"hasSecret,omitempty"`
	Sealed    string `json:"-" sealed:"secret"`
	AnswerID  string `json:"-"`
}

// Open reports whether the question waits for its answer.
func (q Question) Open() bool { return q.Status == QuestionOpen }

// QuestionAsked says that the claimant asked the client. The clock of the SLA and the
// clock of silence stand from now on, until the question is answered or closed.
type QuestionAsked struct {
	QuestionID string    `json:"questionId"`
	Token      int       `json:"token"`
	ItemID     string    `json:"itemId,omitempty"`
	Kind       string    `json:"kind"`
	Text       string    `json:"text" sealed:"text"`
	Until      time.Time `json:"until"`
	At         time.Time `json:"at"`
	// Then is the rest of a robot's work, once the question has ended; a person has none.
	Then *Script `json:"then,omitempty"`
}

// Asked is the question as it was asked.
func (e *QuestionAsked) Asked() Question {
	return Question{
		ID: e.QuestionID, ItemID: e.ItemID, Kind: e.Kind, Text: e.Text, Token: e.Token, AskedAt: e.At, Until: e.Until, Status: QuestionOpen,
	}
}

// AnswerGiven is the client's answer. The clocks run again: DueAt is the end of the SLA,
// later by the wait.
type AnswerGiven struct {
	QuestionID string `json:"questionId"`
	// AnswerID tells a repeat of the same command from a second answer.
	AnswerID string `json:"answerId"`
	Text     string `json:"text" sealed:"text"`
	// Sealed is a secret that came with the answer (vault, bound to this stream). Only
	// the current claimant ever sees it open.
	Sealed string    `json:"sealed,omitempty" sealed:"secret"`
	DueAt  time.Time `json:"dueAt"`
	At     time.Time `json:"at"`
	Robot  bool      `json:"robot,omitempty"` // a robot asked, and goes on now
}

// QuestionClosed ends a question without an answer. The clocks run again, as after an
// answer. If the question was unanswered and its item has no verdict, a skip of that item
// follows in the same append.
type QuestionClosed struct {
	QuestionID string    `json:"questionId"`
	Reason     string    `json:"reason"` // unanswered, claim_ended
	DueAt      time.Time `json:"dueAt"`
	At         time.Time `json:"at"`
	Robot      bool      `json:"robot,omitempty"` // a robot asked, and goes on now
}

func (*QuestionAsked) EventType() string  { return "job.question_asked" }
func (*AnswerGiven) EventType() string    { return "job.question_answered" }
func (*QuestionClosed) EventType() string { return "job.question_closed" }

func (e *QuestionAsked) evolve(s *State) {
	s.heard(e.At)
	s.Questions = append(s.Questions, e.Asked())
	s.Script = e.Then
}

func (e *AnswerGiven) evolve(s *State) {
	s.heard(e.At)
	s.DueAt = e.DueAt
	Conclude(s.Questions, e)
}

func (e *QuestionClosed) evolve(s *State) {
	s.heard(e.At)
	s.DueAt = e.DueAt
	Conclude(s.Questions, e)
}

// Conclude writes an answer, or a close, into the question that it names.
func Conclude(all []Question, e domain.Event) {
	switch e := e.(type) {
	case *AnswerGiven:
		conclude(all, e.QuestionID, func(q *Question) {
			q.Status, q.Answer, q.AnswerID, q.ClosedAt = QuestionAnswered, e.Text, e.AnswerID, e.At
			q.Sealed, q.HasSecret = e.Sealed, e.Sealed != ""
		})
	case *QuestionClosed:
		conclude(all, e.QuestionID, func(q *Question) { q.Status, q.ClosedAt = e.Reason, e.At })
	}
}

func conclude(all []Question, id string, change func(*Question)) {
	if at := slices.IndexFunc(all, func(q Question) bool { return q.ID == id }); at >= 0 {
		change(&all[at])
	}
}

// Question gives a question by its id.
func (s State) Question(id string) (q Question, known bool) {
	if at := slices.IndexFunc(s.Questions, func(q Question) bool { return q.ID == id }); at >= 0 {
		return s.Questions[at], true
	}
	return Question{}, false
}

// OpenQuestion gives the question that waits for its answer.
func (s State) OpenQuestion() (q Question, open bool) {
	if n := len(s.Questions); n > 0 && s.Questions[n-1].Open() {
		return s.Questions[n-1], true
	}
	return Question{}, false
}

// Asked is the question of that id, or else the open one, which has the same text.
func (s State) Asked(id string) Question {
	if q, known := s.Question(id); known {
		return q
	}
	q, _ := s.OpenQuestion()
	return q
}

// waited is how long the answered and closed questions have waited together.
func (s State) waited() (sum time.Duration) {
	for _, q := range s.Questions {
		if !q.Open() {
			sum += max(0, q.ClosedAt.Sub(q.AskedAt))
		}
	}
	return sum
}

// Ask is a question that the claimant wants to ask.
type Ask struct {
	CheckerID  string
	Token      int
	QuestionID string
	ItemID     string // empty: about the whole test
	Kind       string
	Text       string
	// Wait is how long the question may wait; 0: the project wants no questions.
	Wait time.Duration
	At   time.Time
}

// DecideAsk asks the client. A job has at most one open question. The same text again is
// a repeat, and so is the same id. The wait ends when the question's own time is used up,
// or the time of all questions of the job.
func DecideAsk(s State, a Ask) ([]domain.Event, error) {
	if err := working(s, a.CheckerID, a.Token); err != nil {
		return nil, err
	}
	open, waits := s.OpenQuestion()
	if _, known := s.Question(a.QuestionID); known || waits && open.Text == a.Text && open.ItemID == a.ItemID && open.Token == a.Token {
		return nil, nil
	}
	var wrong domain.Wrong
	wrong.AddIf(strings.TrimSpace(a.Text) == "", "text", "must not be blank")
	wrong.AddIf(!slices.Contains(QuestionKinds(), a.Kind), "kind", "must be one of %s", strings.Join(QuestionKinds(), ", "))
	if err := wrong.Refusal(); err != nil {
		return nil, err
	}
	asked := 0
	for _, q := range s.Questions {
		if q.Token == a.Token {
			asked++
		}
	}
	left := MaxQuestionWait - s.waited()
	const goOn = "skip the item with a reason, or release the job"
	switch {
	case a.ItemID != "" && !s.hasItem(a.ItemID):
		return nil, domain.NotFound("checklist item")
	case waits:
		return nil, domain.Conflict("a question is open already").
			WithHint("wait for its answer until %s", open.Until.UTC().Format(time.RFC3339)).With("openQuestionId", open.ID)
	case a.Wait <= 0:
		return nil, domain.Conflict("the project takes no questions").WithHint(goOn)
	case asked >= MaxQuestions:
		return nil, domain.Conflict("%d questions were asked, the most under one claim", MaxQuestions).WithHint(goOn)
	case left <= 0:
		return nil, domain.Conflict("the test has waited %d minutes for answers, the most it may", int(MaxQuestionWait.Minutes())).
			WithHint(goOn)
	}
	at := s.alive(a.At)
	return []domain.Event{&QuestionAsked{
		QuestionID: a.QuestionID, Token: a.Token, ItemID: a.ItemID, Kind: a.Kind, Text: a.Text, Until: at.Add(min(a.Wait, left)), At: at,
	}}, nil
}

// DecideAnswer answers an open question. The same answer id again is a repeat. The end of
// the SLA is filled in here.
func DecideAnswer(s State, a AnswerGiven) ([]domain.Event, error) {
	if !s.Exists {
		return nil, domain.NotFound("job")
	}
	q, known := s.Question(a.QuestionID)
	switch {
	case !known:
		return nil, domain.NotFound("question")
	case q.AnswerID != "" && q.AnswerID == a.AnswerID:
		return nil, nil
	case s.Status.Ended():
		return nil, domain.Conflict("the job is %s", s.Status).WithHint("an answer helps only while the job is tested")
	case q.Status == QuestionAnswered:
		return nil, domain.Conflict("the question is answered already").WithHint("read the answer at the job")
	case q.Status == QuestionUnanswered:
		return nil, domain.Conflict("the question was open until %s", q.ClosedAt.UTC().Format(time.RFC3339)).
			WithHint("its item was skipped; retest the job with what the checker needs")
	case !q.Open():
		return nil, domain.Conflict("the checker that asked has left the job").WithHint("the next checker asks again if they need to know")
	}
	if strings.TrimSpace(a.Text) == "" && a.Sealed == "" {
		return nil, domain.InvalidAt("text", "must not be blank without a secret")
	}
	a.At = notBefore(a.At, q.AskedAt)
	a.DueAt, a.Robot = s.goesOnUntil(q, a.At), IsRobot(s.CheckerID)
	return []domain.Event{&a}, nil
}

// DecideExpireQuestion closes a question at the end of its wait, and skips its item, so
// that the test goes on.
func DecideExpireQuestion(s State, now time.Time) ([]domain.Event, error) {
	q, open := s.OpenQuestion()
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case !open || now.Before(q.Until):
		return nil, nil
	}
	events := s.closing(QuestionUnanswered, now)
	if v, said := s.Verdicts[q.ItemID]; q.ItemID != "" && (!said || v.Status == ItemPending) {
		v.Note = strings.TrimSpace(fmt.Sprintf("%s\n%s", v.Note, "The checker asked a question about this, and no answer came in time."))
		events = append(events, &ItemChecked{
			ItemID: q.ItemID, Status: ItemSkip, Note: v.Note, Reason: "no_access",
			ScreenshotURL: v.ScreenshotURL, MoreScreenshotURLs: v.More, At: s.alive(now),
		})
	}
	return events, nil
}

// closing closes the open question, if there is one. The events that end a claim follow
// it, so the clock of the SLA runs before they happen.
func (s State) closing(reason string, now time.Time) []domain.Event {
	q, open := s.OpenQuestion()
	if !open {
		return nil
	}
	now = notBefore(now, q.AskedAt)
	due := s.dueAfter(q, now)
	if reason == QuestionUnanswered {
		due = s.goesOnUntil(q, now)
	}
	return []domain.Event{&QuestionClosed{
		QuestionID: q.ID, Reason: reason, DueAt: due, At: now,
		Robot: reason == QuestionUnanswered && IsRobot(s.CheckerID),
	}}
}

// leaving puts the close of an open question before the events that end its claim.
func (s State) leaving(now time.Time, events ...domain.Event) []domain.Event {
	return append(s.closing(QuestionClaimEnded, now), events...)
}

// dueAfter is the end of the SLA after the question's wait. The SLA moves by the wait,
// but at most by the granted time.
func (s State) dueAfter(q Question, now time.Time) time.Time {
	wait := now.Sub(q.AskedAt)
	return s.DueAt.Add(min(wait, q.Until.Sub(q.AskedAt)))
}

// goesOnUntil is dueAfter for a claimant that goes on, and has time for it.
func (s State) goesOnUntil(q Question, now time.Time) time.Time {
	return notBefore(s.dueAfter(q, now), now.Add(AnswerLeaves))
}

func notBefore(at, earliest time.Time) time.Time {
	if at.Before(earliest) {
		return earliest
	}
	return at
}
