// Package download holds the rules that keep one download from holding what others need: how slow it may be, and who may
// download next.
package download
