package ui

import (
	"context"

	"github.com/google/uuid"

	"humanqa/domain"
)

// Find looks for the thing with the path's id in each of the person's accounts. The
// account that has it becomes the page's.
func Find[T any](r *Request, what string, get func(ctx context.Context, accountID, id string) (T, error)) (T, error) {
	id := r.PathValue("id")
	if _, err := uuid.Parse(id); err != nil {
		return *new(T), domain.NotFound(what)
	}
	for _, m := range r.Accounts {
		found, err := get(r.Context(), m.AccountID, id)
		if err == nil {
			r.In(m)
			return found, nil
		}
		if !domain.IsKind(err, domain.KindNotFound) {
			return *new(T), err
		}
	}
	return *new(T), domain.NotFound(what).WithHint("it may belong to another account")
}

// Handler answers a page about the thing with the path's id.
type Handler[T any] func(*Request, T) (Answer, error)

// About finds the thing with the path's id for the page's handler.
func About[T any](
	what string, get func(ctx context.Context, accountID, id string) (T, error),
) func(Handler[T]) func(*Request) (Answer, error) {
	return With(func(r *Request) (T, error) { return Find(r, what, get) })
}

// With reads what the page's handler is about.
func With[T any](read func(*Request) (T, error)) func(Handler[T]) func(*Request) (Answer, error) {
	return func(handle Handler[T]) func(*Request) (Answer, error) {
		return func(r *Request) (Answer, error) {
			found, err := read(r)
			if err != nil {
				return Answer{}, err
			}
			return handle(r, found)
		}
	}
}

// WhileOpen is Changing for a page without an id in its path.
func WhileOpen(handle func(*Request) (Answer, error)) func(*Request) (Answer, error) {
	return func(r *Request) (Answer, error) {
		if err := r.Open(); err != nil {
			return Answer{}, err
		}
		return handle(r)
	}
}

// Changing is the handler of a form that a suspended account must not use.
func Changing[T any](handle Handler[T]) Handler[T] {
	return func(r *Request, found T) (Answer, error) {
		if err := r.Open(); err != nil {
			return Answer{}, err
		}
		return handle(r, found)
	}
}

// Open refuses to change anything in an account that is suspended.
func (r *Request) Open() error {
	if r.Account.Suspended {
		return domain.Forbidden("%s is suspended", r.Account.Name).WithHint("nothing can be changed until it is reinstated")
	}
	return nil
}
