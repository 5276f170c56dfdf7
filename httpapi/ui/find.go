package ui

import (
	"context"

	"github.com/google/uuid"

	"humanqa/domain"
)

// Find looks for what the path's id names in each of the person's accounts, and
// makes the one that has it the page's.
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
