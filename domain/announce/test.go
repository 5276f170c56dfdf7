package announce

import (
	"time"

	"humanqa/domain"
)

// TestName is an event that a client orders to test its endpoint (decisions,
// "Deliveries"). It comes from no event of the log, and no list names it.
const TestName = "webhook.test"

type testData struct {
	ProjectID string `json:"projectId"`
	Message   string `json:"message"`
}

// Test gives the bytes of a test event.
func Test(project string, at time.Time) ([]byte, error) {
	return domain.EncodeJSON(envelope{
		Event: TestName, Type: TestName, Timestamp: stamp(at), ProjectID: orNull(project),
		Data: testData{ProjectID: project, Message: "This is a test. Nothing has happened."},
	})
}
