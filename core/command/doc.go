// Package command is what an agent can be told and asked. Each command and each question is one type, with its JSON form, its
// result and what it is about; ports, agentclient, the agent and the fake are generic over them.
//
// The JSON of a command is its payload. An agent keeps its hash, and refuses members that it does not know. A control plane and
// an agent work together where they have the same Protocol, and only there.
package command
