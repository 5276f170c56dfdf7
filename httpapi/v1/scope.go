package v1

import (
	"context"

	"humanqa/domain"
	"humanqa/httpapi/wire"
)

// ErrOtherProject refuses a project-bound key a resource of another project, or of all
// projects.
var ErrOtherProject = domain.Forbidden("the API key is bound to another project").
	WithHint("use a key of that project, or one without a project")

// mayUseProject refuses a project-bound key another project of its account. A project of
// another account is not found, as for every key.
func (a *Handlers) mayUseProject(ctx context.Context, c wire.Caller, projectID string) error {
	if c.ProjectID == "" || c.ProjectID == projectID {
		return nil
	}
	if _, err := a.Reads.Projects.Get(ctx, c.AccountID, projectID); err != nil {
		return err
	}
	return ErrOtherProject
}

// narrow makes the key's project the filter of a list that names none. none says that the
// list is empty: as a filter, another account's project matches nothing.
func (a *Handlers) narrow(r *wire.Request, projectID *string) (none bool, err error) {
	if *projectID == "" {
		*projectID = r.Caller.ProjectID
	}
	err = a.mayUseProject(r.Context(), r.Caller, *projectID)
	if domain.IsKind(err, domain.KindNotFound) {
		return true, nil
	}
	return false, err
}
