package pagetest

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"humanqa/httpapi/ui"
)

// Prove sets how old the guest's proof is: an SQL interval, such as '1 hour'.
func (s *Service) Prove(g Guest, age string) {
	s.T.Helper()
	_, err := s.DB.ExecContext(s.T.Context(), `UPDATE signin.sessions SET proved_at = now() - $2::interval WHERE person_id = $1`, g.ID, age)
	s.Must(err)
}

// Waiting gives the id of the form that the service keeps until the proof, from its answer;
// empty: it keeps none.
func Waiting(got Response) string {
	to, err := url.Parse(got.Header.Get("Location"))
	if err != nil || got.Status != http.StatusSeeOther || to.Path != ui.ConfirmPath {
		return ""
	}
	return to.Query().Get(ui.FormField)
}

// KeepsForms sends each form that asks for a proof and whose pattern has the prefix begins,
// with an old proof. The form must wait, and be carried out once. fill is that of HostileIDs;
// answers gives the status of the page's answer when the form is carried out.
func (s *Service) KeepsForms(g Guest, begins string, fill func(pattern string) string, answers func(ui.Page) int) {
	s.T.Helper()
	walked := 0
	for _, p := range s.Site.Pages {
		if !p.Fresh || p.Method != http.MethodPost || !strings.HasPrefix(p.Pattern, begins) {
			continue
		}
		walked++
		s.Prove(g, "1 hour")
		command := uuid.NewString()
		id := Waiting(s.Call(g, http.MethodPost, fill(p.Pattern), Form(ui.CommandField, command)))
		if id != command {
			s.T.Errorf("%s keeps the form as %q", p.Pattern, id)
			continue
		}
		if got := s.Call(g, http.MethodPost, ui.ConfirmPath+"/resend", Form(ui.FormField, id)); Waiting(got) != id {
			s.T.Errorf("%s without the proof: %d", p.Pattern, got.Status)
		}
		s.Prove(g, "0")
		for _, want := range []int{answers(p), http.StatusConflict} {
			if got := s.Call(g, http.MethodPost, ui.ConfirmPath+"/resend", Form(ui.FormField, id)); got.Status != want {
				s.T.Errorf("%s after the proof: %d, want %d", p.Pattern, got.Status, want)
			}
		}
	}
	if walked == 0 {
		s.T.Errorf("no form that asks for a proof begins with %s", begins)
	}
}
