// Package exercises has the exercises of the lessons: each as it starts, which
// fails, and in a file of its own an answer. To check yours, change the start and
// run
//
//	go test ./scripts/exercises -exercise NAME
//
// As long as it says ok, the test of all starts fails: they are there to fail.
package exercises
