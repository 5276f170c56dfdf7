package input

import (
	"strings"

	"humanqa/domain/command"
	"humanqa/domain/session"
	"humanqa/httpapi/wire"
)

const (
	maxRoleLabel     = 80
	maxScenarioBrief = 2000
)

// Session reads a session: the fields of a hosted test, and the slots. An AI review is
// refused: no checkers meet for it.
func Session(o wire.Object, l *Limits) (command.NewSession, Target) {
	test, target := readHosted(o, l)
	in := command.NewSession{
		Test:          test,
		Slots:         readSlots(o),
		ScenarioBrief: strings.TrimSpace(o.Optional("scenarioBrief", maxScenarioBrief)),
		VoiceEnabled:  o.Boolean("voiceEnabled", true),
	}
	if in.Test.Type.Automatic() {
		o.Wrong("jobType", "must be a type that checkers test")
	}
	return in, target
}

func readSlots(o wire.Object) []command.NewSlot {
	const name = "slots"
	if o.Broken() { // the body itself is wrong
		return nil
	}
	if _, there := o.Given(name); !there {
		o.Wrong(name, "is required: %d to %d slots", session.MinSlots, session.MaxSlots)
		return nil
	}
	if values, ok := o.List(name, session.MaxSlots); ok && len(values) < session.MinSlots {
		o.Wrong(name, "must have at least %d entries", session.MinSlots)
	}
	var slots []command.NewSlot
	for _, slot := range o.Objects(name, session.MaxSlots) {
		slots = append(slots, command.NewSlot{
			RoleLabel: strings.TrimSpace(slot.Optional("roleLabel", maxRoleLabel)), Target: readTarget(slot),
		})
	}
	return slots
}
