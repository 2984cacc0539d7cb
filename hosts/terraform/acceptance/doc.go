// Package acceptance tries the provider by the real terraform, on a development host.
package acceptance
