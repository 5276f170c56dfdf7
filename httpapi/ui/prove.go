package ui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/internal/credential"
)

// FormField names the form that waits for a proof, on the page that asks for one.
const FormField = "form"

// ConfirmPath is the page that asks for a fresh proof of the person.
const ConfirmPath = "/signin/confirm"

// askForProof leads to the page that asks for a fresh proof. A form that was sent is kept
// and carried out after it (decisions, "Proof of a person"). A page's script cannot
// follow, so it is refused.
func (s *Site) askForProof(r *Request, page *Page) (Answer, error) {
	if r.WantsJSON() {
		return Answer{}, domain.Forbidden("this needs a fresh proof that it is you").
			WithHint("load the page again, and confirm your identity")
	}
	query := url.Values{"next": {s.back(r)}}
	if r.Method == http.MethodPost {
		id, err := s.keepForm(r, page)
		if err != nil {
			return Answer{}, err
		}
		query.Set(FormField, id.String())
	}
	return Go(ConfirmPath + "?" + query.Encode()), nil
}

// keepForm keeps the body as it was sent, whatever its type. It refuses one over maxForm bytes.
func (s *Site) keepForm(r *Request, page *Page) (uuid.UUID, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return uuid.Nil, domain.Invalid(domain.Detail{Path: "form", Message: "cannot be read"})
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err := r.readForm(false); err != nil {
		return uuid.Nil, err
	}
	if err := r.sameAccount(page); err != nil {
		return uuid.Nil, err
	}
	id, err := uuid.Parse(r.PostFormValue(CommandField))
	if err != nil {
		id = uuid.New()
	}
	return id, s.Credentials.KeepForm(r.Context(), *r.Session, id, credential.Form{
		Path: r.URL.RequestURI(), AccountID: r.Account.ID, Type: r.Header.Get("Content-Type"), From: s.back(r), Body: body,
	})
}

// Proven says that the person has just proved their identity.
func (r *Request) Proven() bool { return r.Session.Fresh(r.site.Now()) }

// resentKey is the context's mark of a request that sends a kept form again.
type resentKey struct{}

type resent struct {
	id        uuid.UUID
	accountID string
}

func resentIn(ctx context.Context) (form resent, again bool) {
	form, again = ctx.Value(resentKey{}).(resent)
	return form, again
}

// Resend carries out a form that waited for the proof. The form is handled as a new request,
// with all checks, in the account in which it was sent. credential.ErrNoForm: it no longer
// waits.
func (r *Request) Resend(formID string) (Answer, error) {
	id, err := uuid.Parse(formID)
	if err != nil {
		return Answer{}, credential.ErrNoForm
	}
	form, err := r.site.Credentials.Form(r.Context(), *r.Session, id)
	if err != nil {
		return Answer{}, err
	}
	to, err := url.ParseRequestURI(form.Path)
	if err != nil {
		return Answer{}, fmt.Errorf("send a kept form again: %w", err)
	}
	return Answer{Serve: http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		again := hr.Clone(context.WithValue(hr.Context(), resentKey{}, resent{id: id, accountID: form.AccountID}))
		again.Method, again.URL, again.RequestURI = http.MethodPost, to, form.Path
		again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(form.Body)), int64(len(form.Body))
		again.Form, again.PostForm, again.MultipartForm = nil, nil, nil
		again.Header.Set("Content-Type", form.Type)
		again.Header.Set("Referer", "http://"+hr.Host+form.From)
		r.site.mux.ServeHTTP(w, again)
	})}, nil
}

// carriedOut forgets a kept form that has its answer. After an error of the service, the
// form still waits and can be sent again: its command's id is the same.
func (s *Site) carriedOut(r *Request, err error) {
	form, again := resentIn(r.Context())
	var known *domain.Error
	if !again || err != nil && (!errors.As(err, &known) || StatusOf(known.Kind) >= http.StatusInternalServerError) {
		return
	}
	if err := s.Credentials.ForgetForm(r.Context(), *r.Session, form.id); err != nil {
		r.Log.WithError(err).Warn("a form that was carried out is kept until it expires")
	}
}
