// Package driver implements the worlds for the scenarios of package spec: the use cases on fakes (Core), HTTP with everything
// else in memory (HTTP), and real processes (Stack).
package driver
