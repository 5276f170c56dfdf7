package dashboard

import (
	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/ui"
	"humanqa/projections/events"
)

// newsView holds the events that a browser shows to its person as notifications.
type newsView struct {
	Cursor string     `json:"cursor"` // for the next request
	News   []newsLine `json:"news"`
}

type newsLine struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
	Href  string `json:"href"`
}

// newsMost bounds an answer: the script asks again.
const newsMost = 50

var newsTypes = domain.TypesOf((*job.Completed)(nil), (*job.Failed)(nil), (*job.QuestionAsked)(nil),
	(*project.WebhookDisabled)(nil), (*credits.Debited)(nil))

// news answers the script of an open page with the events after its cursor. A request
// without a cursor gets the newest one.
func (d Deps) news(r *ui.Request) (ui.Answer, error) {
	v := newsView{Cursor: r.FormValue("after"), News: []newsLine{}}
	var err error
	if v.Cursor == "" {
		v.Cursor, err = d.Reads.Events.Newest(r.Context())
		return ui.Answer{JSON: v}, err
	}
	d.Fresh.Feed(r.Context(), r.Log)
	came, err := d.Reads.Events.After(r.Context(), r.Account.ID, events.Filter{After: v.Cursor, Types: newsTypes, Limit: newsMost})
	if err != nil {
		return ui.Answer{}, err
	}
	for _, e := range came {
		v.Cursor = e.Cursor
		one := words.NoticeOf(e)
		line := newsLine{ID: one.ID, Title: one.Text, Text: one.Detail, Href: one.Href}
		if done, ok := e.Recorded.Event.(*job.Completed); ok {
			line.Title, line.Href = "Report: "+e.About.Title, "/dashboard/jobs/"+e.Recorded.StreamID()
			line.Text = job.Tally(done.PassCount, done.FailCount, done.SkipCount)
		} else if _, asks := e.Recorded.Event.(*job.QuestionAsked); asks {
			line.Title, line.Text = "The checker asks: "+e.About.Title, "The test waits for your answer."
			line.Href = "/dashboard/jobs/" + e.Recorded.StreamID() + "#questions"
		}
		v.News = append(v.News, line)
	}
	return ui.Answer{JSON: v}, nil
}
