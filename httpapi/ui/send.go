package ui

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"humanqa/httpapi/wire"
	"humanqa/projections/people"
)

// send writes the answer to the client, and gives its status.
func (s *Site) send(w http.ResponseWriter, r *Request, a Answer) int {
	h := w.Header()
	status := max(a.Status, http.StatusOK)
	for _, c := range a.Cookies {
		http.SetCookie(w, c)
	}
	h.Set("Cache-Control", "no-store")
	switch {
	case a.Redirect != "":
		h.Set("Location", a.Redirect)
		w.WriteHeader(http.StatusSeeOther)
		return http.StatusSeeOther
	case a.JSON != nil:
		h.Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(a.JSON) // the client is gone
		return status
	case a.File != nil:
		h.Set("Content-Type", a.File.Type)
		h.Set("Content-Disposition", "attachment; filename="+strconv.Quote(a.File.Name))
		w.WriteHeader(status)
		_, _ = w.Write(a.File.Content) // the client is gone
		return status
	}
	return s.sendPage(w, r, a, status)
}

// waiting is how many questions the page's frame tells of.
func (s *Site) waiting(r *Request) int {
	if r.Person == nil || r.Account.ID == "" {
		return 0
	}
	n, err := s.Waiting(r.Context(), r.Account.ID)
	if err != nil {
		r.Log.WithError(err).Warn("the number of questions is not shown")
	}
	return n
}

// sendPage renders a page and sends it.
func (s *Site) sendPage(w http.ResponseWriter, r *Request, a Answer, status int) int {
	h := w.Header()
	if a.Bare {
		r.Account, r.Role = people.Account{}, ""
	}
	was := refusedIn(r.Context())
	if was == nil && a.Refused != nil {
		was = newRefused(r, a.Refused)
		status = StatusOf(a.Refused.Kind)
	}
	if status != http.StatusOK || r.Method != http.MethodGet {
		a.Live, a.Every = nil, 0 // its URL shows another page
	}
	note, gone := s.note(r)
	if gone != nil {
		http.SetCookie(w, gone)
	}
	f := Frame{
		Note: note, Waiting: s.waiting(r), Command: uuid.NewString(), refused: was,
		Title: a.Title, Path: r.URL.Path, Person: r.Person, Account: r.Account, Role: r.Role,
		Accounts: r.Accounts, Live: strings.Join(a.Live, " "), Every: int(a.Every.Seconds()), Home: home(r.Person), View: a.View,
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	if a.For > 0 {
		h.Set("Refresh", fmt.Sprintf("%d; url=%s", int(a.For.Seconds()), a.Then))
	}
	if a.Rows != nil {
		s.sendRows(w, r, a, f)
		return status
	}
	body, err := s.renderer.page(a.Template, f)
	switch {
	case errors.Is(err, errNoForm):
		return s.send(w, was.Request, s.refuse(was.Request, was.err))
	case err != nil:
		r.Log.WithError(err).Error("page not rendered")
		http.Error(w, "internal error", http.StatusInternalServerError)
		return http.StatusInternalServerError
	}
	tag := ""
	if !a.Secret && (len(a.Live) > 0 || a.Every > 0) {
		sum := sha256.Sum256(bytes.ReplaceAll(body, []byte(f.Command), nil))
		tag = hex.EncodeToString(sum[:16])
		h.Set("Cache-Control", "private, no-cache")
		h.Set("Etag", `W/"`+tag+`"`) // weak: compressed or not, it is one page
		if wire.Matches(r.Header.Values("If-None-Match"), `"`+tag+`"`) {
			w.WriteHeader(http.StatusNotModified)
			return http.StatusNotModified
		}
	}
	body = bytes.Replace(body, []byte(tagMark), []byte(tag), 1)
	if !a.Secret && r.Method == http.MethodGet { // the answer to a form may show a secret once (wire.Gzip)
		h.Add("Vary", "Accept-Encoding")
		if len(body) >= compressed && wire.TakesGzip(r.Header.Values("Accept-Encoding")) {
			h.Set("Content-Encoding", "gzip")
			body = wire.Gzip(body)
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client is gone
	return status
}

// sendRows sends a page whose rows are read while it is sent. After an error it aborts the
// connection, so that no client takes a part of the page for the whole.
func (s *Site) sendRows(w http.ResponseWriter, r *Request, a Answer, f Frame) {
	out, end := io.Writer(w), func() error { return nil }
	w.Header().Add("Vary", "Accept-Encoding")
	if !a.Secret && wire.TakesGzip(r.Header.Values("Accept-Encoding")) {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		out, end = packed, packed.Close
	}
	w.WriteHeader(http.StatusOK)
	var broken error
	f.Rows = func(yield func(any) bool) {
		broken = a.Rows(r.Context(), func(part any) error {
			yield(part)
			return nil
		})
	}
	err := s.renderer.render(out, a.Template, f)
	if err = cmp.Or(err, broken, end()); err != nil {
		r.Log.WithError(err).Info("a page broke off")
		panic(http.ErrAbortHandler)
	}
}

// compressed is the size, in bytes, from which a page is compressed: a smaller one is one
// packet anyway.
const compressed = 1400
