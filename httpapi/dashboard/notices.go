package dashboard

import (
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/person"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/ui"
	"humanqa/projections/events"
)

const (
	// noticesShown bounds the notices on the overview: the newest.
	noticesShown = 10
	// noticesFor is the time for which a notice stays that the person never marks as seen.
	noticesFor = 30 * 24 * time.Hour
)

// notices are those that the person has not marked as seen; upTo is the cursor
// that marks them.
func (d Deps) notices(r *ui.Request) (list []words.Notice, upTo string, err error) {
	seen, err := d.Preferences.Seen(r.Context(), r.Account.ID, r.Person.ID)
	if err != nil {
		return nil, "", err
	}
	d.Fresh.Feed(r.Context(), r.Log)
	told, err := d.Reads.Events.Notices(r.Context(), r.Account.ID, seen, noticesShown)
	if err != nil {
		return nil, "", err
	}
	oldest := d.Now().Add(-noticesFor)
	for _, e := range told {
		if e.Recorded.Meta.Time.Before(oldest) {
			break
		}
		if upTo == "" {
			upTo = e.Cursor
		}
		list = append(list, words.NoticeOf(e))
	}
	if !r.Role.Includes(person.Owner) {
		return list, upTo, nil
	}
	looks, at, err := d.lookNotices(r, seen, oldest)
	if err != nil {
		return nil, "", err
	}
	list = append(list, looks...)
	slices.SortStableFunc(list, func(a, b words.Notice) int { return b.At.Compare(a.At) })
	return list[:min(len(list), noticesShown)], events.LaterCursor(upTo, at), nil
}

// lookNotices are the looks of operators that an owner has not marked as seen, and
// the cursor of the latest.
func (d Deps) lookNotices(r *ui.Request, seen string, oldest time.Time) (list []words.Notice, upTo string, err error) {
	looks, err := d.looksInto(r, oldest, noticesShown)
	if err != nil {
		return nil, "", err
	}
	for _, l := range looks {
		cursor := events.CursorAt(l.Position())
		if seen != "" && events.LaterCursor(seen, cursor) != cursor || cursor == seen {
			break
		}
		if upTo == "" {
			upTo = cursor
		}
		list = append(list, words.Notice{ID: l.ID, At: l.At, Text: l.By + ", an operator of this service, opened " + l.What,
			Detail: l.Reason, Href: l.Href})
	}
	return list, upTo, nil
}

// markSeen takes the notices away, up to the newest that was shown.
func (d Deps) markSeen(r *ui.Request) (ui.Answer, error) {
	upTo := r.PostFormValue("upto")
	if upTo == "" || !events.IsCursor(upTo) {
		return ui.Answer{}, domain.Invalid(domain.Detail{Path: "upto", Message: "must be the value that the page sent"})
	}
	err := d.Preferences.MarkSeen(r.Context(), r.Account.ID, r.Person.ID, upTo)
	return ui.Go("/dashboard"), err
}
