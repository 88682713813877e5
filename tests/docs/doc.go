// Package docs holds the tests of the documentation: links and anchors lead somewhere, English pages and their Russian
// twins have the same form, examples are valid, commands name what exists. testdata has pages that fail each of them.
package docs
