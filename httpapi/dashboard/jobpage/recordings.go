package jobpage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/retention"
	"humanqa/httpapi/ui"
	"humanqa/projections/jobs"
)

// filmView is a recording with the moments of the test that are seen in it.
type filmView struct {
	ID    string
	Href  string
	Marks []filmMark
	Lasts time.Duration // 0: not known
	Gone  *retention.Gone
}

// Strip are the moments on the line under the player, in the order in which they are drawn.
func (f filmView) Strip() []filmMark {
	return slices.SortedStableFunc(slices.Values(f.Marks), func(a, b filmMark) int {
		return ui.DrawnAfter(string(a.Status), string(b.Status))
	})
}

// X is the place of a moment on the strip, which is 100 wide.
func (f filmView) X(m filmMark) string {
	whole := f.Lasts
	if whole == 0 {
		whole = f.Marks[len(f.Marks)-1].At + time.Second
	}
	return ui.Place(m.At, whole)
}

// filmMark is a moment, counted from the recording's start.
type filmMark struct {
	At     time.Duration
	Status job.ItemStatus // of a verdict; empty for a moment that was marked
	Text   string
}

// Clock is the moment as players show it.
func (m filmMark) Clock() string {
	s := int(m.At / time.Second)
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// Seconds is the moment as a link to it says it.
func (m filmMark) Seconds() string { return strconv.FormatFloat(m.At.Seconds(), 'f', 1, 64) }

// Before is half a minute earlier, where a failure began to show.
func (m filmMark) Before() string {
	return strconv.FormatFloat(max(0, m.At-beforeFail).Seconds(), 'f', 1, 64)
}

const beforeFail = 30 * time.Second

// films are the test's recordings. Each verdict stands at the time when its item last got it.
func (d Deps) films(ctx context.Context, j jobs.Job, recordings []job.Recording) (films []filmView, err error) {
	if len(recordings) == 0 {
		return nil, nil
	}
	type moment struct {
		at   time.Time
		mark filmMark
	}
	moments := map[string]moment{}
	names := map[string]string{}
	for _, i := range j.Items {
		names[i.ID] = i.Description
	}
	err = d.Commands.JobEvents(ctx, j.AccountID, j.ID, func(r domain.Recorded) {
		switch e := r.Event.(type) {
		case *job.ItemChecked:
			if was, said := moments[e.ItemID]; said && was.mark.Status == e.Status {
				return // only its note or its pictures are new
			}
			moments[e.ItemID] = moment{e.At, filmMark{Status: e.Status, Text: names[e.ItemID]}}
		case *job.FindingAdded:
			moments[e.Item.ID] = moment{e.At, filmMark{Status: e.Status, Text: e.Item.Description}}
		case *job.FindingEdited:
			moments[e.Item.ID] = moment{moments[e.Item.ID].at, filmMark{Status: e.Status, Text: e.Item.Description}}
		case *job.FindingWithdrawn:
			delete(moments, e.FindingID)
		case *job.MomentMarked:
			moments[e.ID] = moment{e.At, filmMark{Text: cmp.Or(e.Label, "Marked by the checker")}}
		}
	})
	seen := map[string]bool{}
	for id, m := range moments {
		seen[id] = slices.ContainsFunc(j.Recordings, func(r job.Recording) bool { return shows(r, m.at, 0) })
	}
	for _, r := range recordings {
		f := filmView{ID: r.ID, Href: "/dashboard/jobs/" + j.ID + "/recordings/" + r.ID,
			Lasts: time.Duration(r.DurationMs) * time.Millisecond}
		for id, m := range moments {
			if m.mark.Status == job.ItemPending || !shows(r, m.at, 0) && (seen[id] || !shows(r, m.at, afterFilm)) {
				continue
			}
			if m.mark.At = m.at.Sub(r.StartedAt); r.DurationMs > 0 {
				m.mark.At = min(m.mark.At, time.Duration(r.DurationMs)*time.Millisecond)
			}
			f.Marks = append(f.Marks, m.mark)
		}
		slices.SortFunc(f.Marks, func(a, b filmMark) int {
			return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Text, b.Text))
		})
		films = append(films, f)
	}
	return films, err
}

// afterFilm is the time after a recording's end in which a verdict still belongs to it,
// unless another recording shows it: a checker gives the last verdict a moment late, and on
// a slow network it comes late.
const afterFilm = time.Minute

// shows says that the recording was running at that time, or ended at most before earlier.
// A recording whose end is not known still runs.
func shows(r job.Recording, at time.Time, before time.Duration) bool {
	in := at.Sub(r.StartedAt)
	return in >= 0 && (r.DurationMs == 0 || in <= time.Duration(r.DurationMs)*time.Millisecond+before)
}

func filmOf(r *ui.Request, j jobs.Job) (job.Recording, error) {
	for _, recording := range j.Recordings {
		if recording.ID == r.PathValue("recording") {
			return recording, nil
		}
	}
	return job.Recording{}, domain.NotFound("recording")
}

// film serves a recording at an address that stays, so that a player may ask for
// parts of it at any time.
func (d Deps) film(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	recording, err := filmOf(r, j)
	if err != nil {
		return ui.Answer{}, err
	}
	file, err := d.Evidence.File(r.Context(), j.AccountID, recording.URL)
	return ui.Answer{Serve: file}, err
}

// filmMarks are the moments as chapters, in WebVTT.
func (d Deps) filmMarks(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	recording, err := filmOf(r, j)
	if err != nil {
		return ui.Answer{}, err
	}
	films, err := d.films(r.Context(), j, []job.Recording{recording})
	if err != nil {
		return ui.Answer{}, err
	}
	return ui.Answer{File: &ui.File{Name: "marks.vtt", Type: "text/vtt; charset=utf-8", Content: chapters(films[0].Marks, recording)}}, nil
}

// chapters writes each moment as a chapter that lasts until the next. No two begin in the
// same millisecond: players would show the longer one first. Texts of people are escaped,
// and stay within their line.
func chapters(marks []filmMark, r job.Recording) []byte {
	marks = slices.Clone(marks)
	for n := 1; n < len(marks); n++ {
		marks[n].At = max(marks[n].At, marks[n-1].At+time.Millisecond)
	}
	var b strings.Builder
	b.WriteString("WEBVTT\n")
	for n, m := range marks {
		end := max(m.At+time.Second, time.Duration(r.DurationMs)*time.Millisecond)
		if n+1 < len(marks) {
			end = marks[n+1].At
		}
		word := cmp.Or(verdictWords[m.Status], "Marked")
		text := strings.Join(strings.Fields(word+": "+m.Text), " ")
		fmt.Fprintf(&b, "\n%d\n%s --> %s\n%s\n", n+1, vttTime(m.At), vttTime(end), vttText.Replace(text))
	}
	return []byte(b.String())
}

var vttText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func vttTime(d time.Duration) string {
	ms := d.Milliseconds()
	return fmt.Sprintf("%02d:%02d:%02d.%03d", ms/3_600_000, ms/60_000%60, ms/1000%60, ms%1000)
}
