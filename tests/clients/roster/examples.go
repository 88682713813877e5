package roster

// Example is a program of the page Access.
type Example struct {
	// Name of its Pod and of its ServiceAccount.
	Name string
	// Language is how the page calls it; its code block of the language Block is the file page/File.
	Language, Block, File string
	// Image has it, at the end of Command.
	Image   Kind
	Command []string
	// Says is what it writes, among other things.
	Says string
}

// Examples are the programs of the page, which run as they stand there.
func Examples() []Example {
	return []Example{
		{
			Name: "page-shell", Language: "Shell", Block: "bash", File: "hello.sh", Image: AWSCLI,
			Command: []string{"/usr/bin/bash", "-eu", "-o", "pipefail", "/hello.sh"}, Says: "hello from the shell",
		},
		{
			Name: "page-python", Language: "Python", Block: "python", File: "hello.py", Image: Boto3,
			Command: []string{"/usr/bin/python3", "/hello.py"}, Says: "hello from Python",
		},
		{Name: "page-go", Language: "Go", Block: "go", File: "hello.go", Image: Program, Command: []string{"/hello"}, Says: "hello from Go"},
		{
			Name: "page-javascript", Language: "JavaScript", Block: "javascript", File: "hello.mjs", Image: JavaScript,
			Command: []string{"/app/bin/node", "/app/hello.mjs"}, Says: "hello from JavaScript",
		},
		{
			Name: "page-java", Language: "Java", Block: "java", File: "Hello.java", Image: Java,
			Command: []string{"/usr/bin/bash", "-eu", "/java.sh", "Hello"}, Says: "hello from Java",
		},
	}
}
