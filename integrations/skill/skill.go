// Package skill holds the texts for coding agents that use the service: a skill, and the section of
// an AGENTS.md. Tests hold their prices, exit codes, tools and commands to the programs.
package skill

import _ "embed"

// Name is the skill's, and that of its folder.
const Name = "human-qa"

// Text is the skill: Markdown with front matter.
//
//go:embed human-qa/SKILL.md
var Text string

// AgentsSection is what the AGENTS.md of a repository says of human tests.
//
//go:embed agents-section.md
var AgentsSection string
