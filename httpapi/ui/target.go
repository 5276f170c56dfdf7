package ui

import "humanqa/domain/job"

// On lists the parts of a test's target that its client has named, such as the device.
func On(t job.Target) (on []string) {
	for _, what := range []string{t.Device, t.OS, t.Browser, t.ScreenSize, t.Network} {
		if what != "" {
			on = append(on, what)
		}
	}
	return on
}
