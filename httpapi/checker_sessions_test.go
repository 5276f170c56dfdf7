package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
)

// A checker's own client sees the room as its page does: all slots, the marks, what
// the deadline does; and nothing of the client.
func TestACheckerLooksIntoTheRoomOfTheirSession(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	o := s.openSession(key, `{"url":"https://shop.example.com/","scenarioBrief":"Meet","slots":[{"roleLabel":"Host","targetDevice":"Phone"},{},{}]}`)
	ann, claim := s.joins(o, 1)
	path := "/v1/checker/sessions/" + o.id
	room := s.call(ann, "GET", path, "").want(http.StatusOK)
	with(t, room, map[string]any{
		"sessionId": o.id, "status": "lobby", "scenarioBrief": "Meet", "voiceEnabled": true, "slot": 1.0, "jobId": o.jobs[0],
		"readyCount": 1.0, "checkerCount": 3.0, "startsWith": nil, "startedAt": nil, "closedAt": nil, "roomUrl": "https://qa.example/workbench/sessions/" + o.id,
	})
	if marks := room["marks"].([]any); len(marks) != 0 {
		t.Errorf("marks of nobody: %v", marks)
	}
	bob, _ := s.joins(o, 2)
	with(t, s.call(bob, "GET", path, "").want(http.StatusOK), map[string]any{"slot": 2.0, "startsWith": 2.0})
	late := s.checker()
	s.takes(late, o, 3)
	s.call(late, "POST", path+"/ready", "").want(http.StatusOK)

	items, _ := claim["checklist"].([]any)
	first := items[0].(map[string]any)["id"].(string)
	token, _ := claim["claimToken"].(string)
	_, err := s.commands.MarkSession(t.Context(), command.Cause{CommandID: domain.NewCommandID(), Actor: "person:dev", AccountID: accountID}, o.id, "dev", "look")
	must.NoError(t, err)
	s.call(ann, "PUT", "/v1/checker/jobs/"+o.jobs[0]+"/items/"+first, `{"status":"fail","note":"White"}`, wire.ClaimTokenHeader, token).want(http.StatusOK) // which waits until all is shown
	answer := s.call(bob, "GET", path, "")
	room = answer.want(http.StatusOK)
	with(t, room, map[string]any{"status": "active", "startsWith": nil, "readyCount": 3.0})
	slot := room["slots"].([]any)[0].(map[string]any)
	with(t, slot, map[string]any{"roleLabel": "Host", "targetDevice": "Phone", "status": "active"})
	with(t, slot["checklist"].(map[string]any), map[string]any{
		"totalItems": float64(len(items)), "checkedItems": 1.0, "passedItems": 0.0, "failedItems": 1.0, "skippedItems": 0.0,
	})
	with(t, room["marks"].([]any)[0].(map[string]any), map[string]any{"slot": nil, "note": "look"})
	for _, hidden := range []string{accountID, o.project, o.jobs[0], "credit", "White", "dev\""} {
		if strings.Contains(answer.Body.String(), hidden) {
			t.Errorf("the answer holds %q: %s", hidden, answer.Body)
		}
	}
}
