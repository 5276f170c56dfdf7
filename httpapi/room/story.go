package room

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/ui"
	"humanqa/projections/jobs"
	"humanqa/projections/sessions"
)

// story is a session that is over, on one timeline: the verdicts of every slot, and the
// marks.
type story struct {
	Lasted  string
	Tracks  []track
	Lines   []string // where the marks are, in percent
	Moments []moment
	Films   []film // only for a person who watches
	Seconds string // from the start to the end of the session, or of the last film
}

// film is a recording, by a slot's checker.
type film struct {
	ID, Who, Href string
	From          string // seconds from the session's start to its own; negative before it
	started       time.Time
	lasted        time.Duration // 0: not known
}

// track is a slot's part of the picture.
type track struct {
	Who    string
	Says   string
	Dots   []dot // the failures last: a later dot is drawn on top
	failed int
}

type dot struct {
	Kind string // pass, fail, skip
	X    string // in percent
}

// moment is a verdict or a mark.
type moment struct {
	At    time.Time
	After string
	Who   string
	Kind  string // pass, fail, skip, mark
	Text  string
	Href  string // of the item in its report; empty: the person may not open it
	Film  string // the film that shows it, at that time; empty: none shows it
	Into  string // seconds after the start
}

// story reads the verdicts from the streams of the slots' jobs, and the marks since the
// start. It leaves out how jobs were claimed and given back.
func (d Deps) story(ctx context.Context, s seat, parts map[string]jobs.Part) (*story, error) {
	whole := s.ClosedAt.Sub(*s.StartedAt)
	out := &story{Lasted: clock(whole)}
	if s.Watches() {
		out.Films = s.films(parts)
	}
	plays := whole
	for _, f := range out.Films {
		plays = max(plays, f.started.Add(f.lasted).Sub(*s.StartedAt)) // a film may last beyond the end
	}
	out.Seconds = seconds(plays)
	for _, m := range s.Marks {
		if s.After(m.At) == "" {
			continue // a mark of the lobby
		}
		out.Moments = append(out.Moments, moment{At: m.At, Who: s.Who(m.Slot), Kind: "mark", Text: m.Note})
		out.Lines = append(out.Lines, s.place(m.At))
	}
	for _, slot := range s.Slots {
		if slot.Status == sessions.SlotDropped {
			continue
		}
		said, err := d.verdicts(ctx, s, slot)
		if err != nil {
			return nil, err
		}
		l := track{Who: s.Who(slot.Slot)}
		counts := map[string]int{}
		for _, m := range said {
			l.Dots = append(l.Dots, dot{m.Kind, s.place(m.At)})
			counts[m.Kind]++
		}
		l.failed = counts[string(job.ItemFail)]
		slices.SortStableFunc(l.Dots, func(a, b dot) int { return ui.DrawnAfter(a.Kind, b.Kind) })
		l.Says = l.Who + ": " + strconv.Itoa(counts["pass"]) + " passed, " + strconv.Itoa(counts["fail"]) + " failed, " +
			strconv.Itoa(counts["skip"]) + " skipped, over " + out.Lasted
		out.Tracks = append(out.Tracks, l)
		out.Moments = append(out.Moments, said...)
	}
	slices.SortStableFunc(out.Tracks, func(a, b track) int { return cmp.Compare(b.failed, a.failed) })
	slices.SortStableFunc(out.Moments, func(a, b moment) int { return a.At.Compare(b.At) })
	for i := range out.Moments {
		m := &out.Moments[i]
		m.After, m.Into = s.After(m.At), seconds(m.At.Sub(*s.StartedAt))
		for _, f := range out.Films {
			into := m.At.Sub(f.started)
			if into >= 0 && (f.lasted == 0 || into <= f.lasted) && (m.Film == "" || f.Who == m.Who) {
				m.Film = f.Href + "#t=" + seconds(into)
			}
		}
	}
	return out, nil
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) }

// films are the slots' recordings, in the slots' order.
func (s seat) films(parts map[string]jobs.Part) (films []film) {
	for _, slot := range s.Slots {
		for _, r := range parts[slot.JobID].Recordings {
			films = append(films, film{
				ID: r.ID, Who: s.Who(slot.Slot), Href: s.Path + "/films/" + r.ID, From: seconds(r.StartedAt.Sub(*s.StartedAt)),
				started: r.StartedAt, lasted: time.Duration(r.DurationMs) * time.Millisecond,
			})
		}
	}
	return films
}

// film leads to a recording, so that the link on the page never expires.
func (d Deps) film(r *ui.Request, s seat) (ui.Answer, error) {
	parts, err := d.parts(r.Context(), s)
	if err != nil {
		return ui.Answer{}, err
	}
	for _, part := range parts {
		for _, known := range part.Recordings {
			if known.ID != r.PathValue("film") {
				continue
			}
			path, ours, err := d.Evidence.Path(r.Context(), s.AccountID, known.URL)
			if err == nil && ours {
				return ui.Answer{Redirect: path}, nil
			}
			if err != nil {
				return ui.Answer{}, err
			}
		}
	}
	return ui.Answer{}, domain.NotFound("recording")
}

// place is where a time lies between start and end, in percent.
func (s seat) place(at time.Time) string {
	return ui.Place(at.Sub(*s.StartedAt), s.ClosedAt.Sub(*s.StartedAt))
}

// verdicts are the verdicts of a slot, each at the time when it was last given.
func (d Deps) verdicts(ctx context.Context, s seat, slot sessions.Slot) (said []moment, err error) {
	var st job.State
	last := map[string]moment{} // by item
	err = d.Commands.JobEvents(ctx, s.AccountID, slot.JobID, func(r domain.Recorded) {
		st = job.Evolve(st, r.Event)
		switch e := r.Event.(type) {
		case *job.ItemChecked:
			item, _ := st.ReportItem(e.ItemID)
			if was := last[e.ItemID]; was.Kind == string(e.Status) {
				return // a note, or a picture
			}
			last[e.ItemID] = moment{At: e.At, Who: s.Who(slot.Slot), Kind: string(e.Status), Text: item.Description, Href: e.ItemID}
		case *job.FindingAdded:
			last[e.Item.ID] = moment{At: e.At, Who: s.Who(slot.Slot), Kind: string(e.Status), Text: e.Item.Description, Href: e.Item.ID}
		case *job.FindingEdited:
			m := last[e.Item.ID]
			m.Kind, m.Text = string(e.Status), e.Item.Description
			last[e.Item.ID] = m
		case *job.FindingWithdrawn:
			delete(last, e.FindingID)
		}
	})
	if domain.IsKind(err, domain.KindNotFound) {
		return nil, nil // a crash prevented the job
	}
	for _, m := range last {
		if m.Kind == string(job.ItemPending) {
			continue
		}
		switch {
		case s.Watches():
			m.Href = "/dashboard/jobs/" + slot.JobID + "#item-" + m.Href
		case slot.JobID == s.Own.JobID && slot.ReportID != "":
			m.Href = "/workbench/jobs/" + slot.JobID + "#item-" + m.Href
		default:
			m.Href = ""
		}
		said = append(said, m)
	}
	slices.SortFunc(said, func(a, b moment) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return slices.Compare([]byte(a.Text), []byte(b.Text))
	})
	return said, err
}
