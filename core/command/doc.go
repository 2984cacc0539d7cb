// Package command is what an agent can be told and asked. Each command and each question is one type, with its JSON form, its
// result and what it is about; ports, agentclient, the agent and the fake are generic over them.
//
// The JSON of a command is its payload. An agent keeps its hash, and an agent of an earlier version refuses members that it does
// not know. So the payload of a command that is there never changes. A new field has the tag `agent:"later"` and is left out
// where it is zero; a new kind, a new step and a new field are sent only to agents that name them (see Needs).
package command
