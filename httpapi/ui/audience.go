package ui

import (
	"fmt"
	"net/http"
	"net/url"

	"humanqa/domain"
	"humanqa/domain/person"
	"humanqa/internal/credential"
	"humanqa/projections/people"
)

// enter limits a request and finds the person who asks. Beyond the limit nothing but the
// session is read.
func (s *Site) enter(r *Request) error {
	for _, step := range []func(*Request) error{s.findSession, s.limit, s.findPerson} {
		if err := step(r); err != nil {
			return err
		}
	}
	return nil
}

// identify finds the person who asks.
func (s *Site) identify(r *Request) error {
	if err := s.findSession(r); err != nil {
		return err
	}
	return s.findPerson(r)
}

// findSession takes a cookie without a valid session as no cookie.
func (s *Site) findSession(r *Request) error {
	token := r.SessionToken()
	if token == "" {
		return nil // a visitor
	}
	session, ok, err := s.Credentials.Session(r.Context(), token)
	if err == nil && ok {
		r.Session = &session
	}
	return err
}

// findPerson leaves no session without its person.
func (s *Site) findPerson(r *Request) error {
	session := r.Session
	if r.Session = nil; session == nil {
		return nil
	}
	who, err := s.People.Person(r.Context(), session.PersonID)
	switch {
	case domain.IsKind(err, domain.KindNotFound): // not shown yet, or gone
		return nil
	case err != nil:
		return err
	case who.Disabled:
		return nil
	}
	names, err := s.Credentials.Names(r.Context(), who.ID)
	if err != nil {
		return err
	}
	form, again := resentIn(r.Context())
	if again {
		session.AccountID = form.accountID // another tab may have chosen another one since
	}
	r.Session = session
	r.Person = &Person{ID: who.ID, Name: names[who.ID].Name, Roles: who.Roles}
	return nil
}

// counted is as what a request counts, and how many of it are answered in a minute.
func (r *Request) counted() (caller string, limit int) {
	if r.Session != nil {
		return "pages:session:" + r.Session.ID.String(), sessionRate
	}
	return "pages:address:" + r.Address, strangerRate
}

// takePlace waits until one of the caller's pages may be made. Those that last as long as a
// client likes need no place.
func (s *Site) takePlace(r *Request, page *Page) (leave func(), err error) {
	if page == nil || page.Upload || page.Takes {
		return func() {}, nil
	}
	caller, _ := r.counted()
	err = s.places.Acquire(r.Context(), caller, 1)
	return func() { s.places.Release(caller, 1) }, err
}

func (s *Site) limit(r *Request) error {
	if refusedIn(r.Context()) != nil {
		return nil // the form was counted
	}
	caller, limit := r.counted()
	retryAfter, err := s.Admit(r.Context(), caller, limit)
	if err != nil || retryAfter == 0 {
		return err
	}
	return &domain.Error{
		Kind: domain.KindRateLimited, Code: domain.CodeRateLimited,
		Message: "too many requests", Hint: fmt.Sprintf("wait %d s, then load the page again", retryAfter),
	}
}

// admit compares the page's audience with the person who asks (decisions, "Pages"). Without
// a sign-in, it leads to the page for it.
func (s *Site) admit(r *Request, page *Page) (Answer, error) {
	if page.For == Anybody {
		s.choose(r, Viewers)
		return Answer{}, nil
	}
	if r.Person == nil {
		return s.signInAnew(r)
	}
	switch page.For {
	case Operators:
		if !r.Person.Has(person.Operator) {
			return Answer{}, errNoPage
		}
		if s.Now().Sub(r.Session.CreatedAt) > credential.OperatorFor {
			return s.signInAnew(r)
		}
	case Checkers:
		if r.Person.CheckerID() == "" {
			return Answer{}, errNoPage
		}
	case SignedIn:
		s.choose(r, Viewers)
	case Viewers, Developers, Owners:
		if !s.choose(r, Viewers) {
			return Answer{}, errNoPage
		}
		// A person with too low a role is told so: they know that the page exists.
		if !s.choose(r, page.For) {
			return Answer{}, domain.Forbidden("your role in %s does not include this", r.Account.Name).
				WithHint("ask an owner of the account")
		}
	case Anybody:
	}
	return Answer{}, nil
}

// EndedField tells the page of the sign-in that a form came without a session.
const EndedField = "sent"

// signInAnew leads to the sign-in. A form that was sent is not kept: without a session its
// owner is not known (decisions, "Proof of a person"). The page says so.
func (s *Site) signInAnew(r *Request) (Answer, error) {
	query := url.Values{"next": {s.back(r)}}
	if r.Method == http.MethodPost {
		query.Set(EndedField, "1")
	}
	return Go("/signin?" + query.Encode()), nil
}

// back is the page to return to: a form that was posted is opened again, at the
// page it stood on.
func (s *Site) back(r *Request) string {
	if r.Method == http.MethodGet {
		return r.URL.RequestURI()
	}
	if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host {
		return from.RequestURI()
	}
	return "/"
}

// choose finds the accounts in which the person has the role that the audience needs. The
// page is about the one that their session chose, if it is among them.
func (s *Site) choose(r *Request, a Audience) bool {
	if r.Person == nil {
		return false
	}
	var fit []people.PersonRole
	for _, m := range r.Person.Memberships() {
		if !m.Role.Includes(a.role()) {
			continue
		}
		if m.AccountID == r.Session.AccountID {
			fit = append([]people.PersonRole{m}, fit...)
		} else {
			fit = append(fit, m)
		}
	}
	if len(fit) == 0 {
		return false
	}
	r.Accounts = fit
	r.In(fit[0])
	return true
}
