package service

import (
	"strings"
)

// Roles are the parts of the service that a process runs.
type Roles struct{ API, Projector, Webhooks, Policy bool }

// ParseRoles reads a list such as HUMANQA_ROLES has.
func ParseRoles(csv string) (Roles, error) {
	var r Roles
	parts := map[string]*bool{"api": &r.API, "projector": &r.Projector, "webhooks": &r.Webhooks, "policy": &r.Policy}
	for name := range strings.SplitSeq(csv, ",") {
		part, ok := parts[strings.TrimSpace(name)]
		if !ok {
			return Roles{}, BadSetting("HUMANQA_ROLES", "%q is no role: use any of api,projector,webhooks,policy", name)
		}
		*part = true
	}
	return r, nil
}

// String lists the parts as HUMANQA_ROLES does.
func (r Roles) String() string {
	var parts []string
	for _, part := range []struct {
		name string
		runs bool
	}{{"api", r.API}, {"projector", r.Projector}, {"webhooks", r.Webhooks}, {"policy", r.Policy}} {
		if part.runs {
			parts = append(parts, part.name)
		}
	}
	return strings.Join(parts, ",")
}
