"""Chat templates in the manner of the model families people run, with
conversations; transformers' rendering of them is the golden text."""

from pathlib import Path

SPECIAL = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
}

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather at a place, \"now\" <or> later & more.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "Stra\u00dfe/\u5e02"},
                "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
                "days": {"type": "integer", "minimum": 1},
                "where": {"type": "array", "items": {"type": "number"}},
            },
            "required": ["place"],
        },
    },
}
CLOCK = {
    "type": "function",
    "function": {"name": "clock", "description": "", "parameters": {}},
}


def say(role: str, content, **more) -> dict:
    return {"role": role, "content": content, **more}


CALL = {
    "id": "call12345",
    "type": "function",
    "function": {
        "name": "get_weather",
        "arguments": {"place": "K\u00f6ln \U0001f326", "days": 2, "x": None},
    },
}

CONVERSATIONS = {
    "user": [say("user", "Hello")],
    "system": [say("system", "Be brief. "), say("user", " Hi there\n")],
    "turns": [
        say("user", "One"),
        say("assistant", "Two"),
        say("user", "Three \u4f60\u597d \U0001f600"),
    ],
    "long": [
        say("system", "S\n\n"),
        say("user", "a"),
        say("assistant", "b"),
        say("user", "c"),
        say("assistant", " <think>\nwhy\n</think>\n\nd "),
        say("user", "e"),
    ],
    "tools": [
        say("system", "Use tools."),
        say("user", "Weather?"),
        say("assistant", None, tool_calls=[CALL]),
        say("tool", "{\"t\": 21.5}", name="get_weather",
            tool_call_id="call12345"),
        say("assistant", "It is 21.5."),
        say("user", "Thanks"),
    ],
    "two_tools": [
        say("user", "Both?"),
        say("assistant", "", tool_calls=[
            CALL,
            {"id": "call67890", "type": "function",
             "function": {"name": "clock", "arguments": {}}},
        ]),
        say("tool", "sunny", name="get_weather", tool_call_id="call12345"),
        say("tool", "12:00", name="clock", tool_call_id="call67890"),
    ],
    "parts": [
        say("user", [
            {"type": "text", "text": "Look "},
            {"type": "image"},
            {"type": "text", "text": "at this"},
        ]),
    ],
    "reasoning": [
        say("user", "Think"),
        say("assistant", "Answer", reasoning_content="\nSteps\n"),
        say("user", "More"),
        say("assistant", "Final", thinking="T"),
    ],
    "odd_start": [say("assistant", "I begin"), say("user", "ok")],
    "repeat": [say("user", "a"), say("user", "b")],
}

ALL = list(CONVERSATIONS)
PLAIN = ["user", "system", "turns", "long", "odd_start", "repeat"]

CHATML = """{% for message in messages %}
{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}
{%- endfor %}
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""

SMOL = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] "
    "!= 'system' %}{{ '<|im_start|>system\nYou are a test.<|im_end|>\n' }}"
    "{% endif %}{{'<|im_start|>' + message['role'] + '\n' + "
    "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

LLAMA2 = """{% if messages and messages[0]['role'] == 'system' %}
    {% set loop_messages = messages[1:] %}
    {% set system_message = messages[0]['content'] %}
{% else %}
    {% set loop_messages = messages %}
    {% set system_message = false %}
{% endif %}
{% for message in loop_messages %}
    {% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{ raise_exception('Roles must alternate user/assistant/user/...') }}
    {% endif %}
    {% if loop.index0 == 0 and system_message != false %}
        {% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}
    {% else %}
        {% set content = message['content'] %}
    {% endif %}
    {% if message['role'] == 'user' %}
        {{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}
    {% elif message['role'] == 'assistant' %}
        {{ ' '  + content.strip() + ' ' + eos_token }}
    {% endif %}
{% endfor %}
"""

LLAMA3 = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{#- The system message comes first. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if builtin_tools is defined or tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{%- if builtin_tools is defined %}
    {{- "Tools: " + builtin_tools | reject('equalto', 'code_interpreter') | join(", ") + "\\n\\n"}}
{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" }}
{%- if tools is not none %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("This model only supports single tool-calls at once!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {%- if builtin_tools is defined and tool_call.name in builtin_tools %}
            {{- "<|python_tag|>" + tool_call.name + ".call(" }}
            {%- for arg_name, arg_val in tool_call.arguments | items %}
                {{- arg_name + '="' + arg_val|string + '"' }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- endif %}
            {%- endfor %}
            {{- ")" }}
        {%- else  %}
            {{- '{"name": "' + tool_call.name + '", ' }}
            {{- '"parameters": ' }}
            {{- tool_call.arguments | tojson }}
            {{- "}" }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

QWEN25 = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You are a helpful assistant.' }}
    {%- endif %}
    {{- "\\n\\n# Tools\\n\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n{\\"name\\": <function-name>}\\n<|im_end|>\\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

QWEN3 = """{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {{- tool_call.function.name }}
                {%- if tool_call.function.arguments is string %}
                    {{- tool_call.function.arguments }}
                {%- else %}
                    {{- tool_call.function.arguments | tojson }}
                {%- endif %}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""

MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, conversation roles must alternate user/assistant/user/assistant/...") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Tool call IDs should be alphanumeric strings with length 9!") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- else %}
                {{- "]" + eos_token }}
            {%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + ", " }}
        {{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, with the exception of an initial optional system message!") }}
    {%- endif %}
{%- endfor %}
"""

GEMMA2 = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
    "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}"
    "{% else %}{% set role = message['role'] %}{% endif %}"
    "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + "
    "'<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}"
)

GEMMA3 = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '

' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '

' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
"""

PHI3 = (
    "{% for message in messages %}{% if message['role'] == 'system' and "
    "message['content'] %}{{'<|system|>\n' + message['content'] + "
    "'<|end|>\n'}}{% elif message['role'] == 'user' %}{{'<|user|>\n' + "
    "message['content'] + '<|end|>\n'}}{% elif message['role'] == "
    "'assistant' %}{{'<|assistant|>\n' + message['content'] + '<|end|>\n'}}"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}"
)

PHI4MINI = (
    "{% for message in messages %}{% if message['role'] == 'system' and "
    "'tools' in message and message['tools'] is not none %}{{ '<|' + "
    "message['role'] + '|>' + message['content'] + '<|tool|>' + "
    "message['tools'] + '<|/tool|>' + '<|end|>' }}{% else %}{{ '<|' + "
    "message['role'] + '|>' + message['content'] + '<|end|>' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}"
    "{% else %}{{ eos_token }}{% endif %}"
)

DEEPSEEK = (
    "{% if not add_generation_prompt is defined %}"
    "{% set add_generation_prompt = false %}{% endif %}"
    "{% set ns = namespace(is_first=false, is_tool=false, "
    "is_output_first=true, system_prompt='') %}"
    "{%- for message in messages %}{%- if message['role'] == 'system' %}"
    "{% set ns.system_prompt = message['content'] %}{%- endif %}"
    "{%- endfor %}{{bos_token}}{{ns.system_prompt}}"
    "{%- for message in messages %}{%- if message['role'] == 'user' %}"
    "{%- set ns.is_tool = false -%}{{'<\uff5cUser\uff5c>' + message['content']}}"
    "{%- endif %}{%- if message['role'] == 'assistant' and "
    "message['tool_calls'] %}{%- set ns.is_tool = false -%}"
    "{%- for tool in message['tool_calls']%}{%- if not ns.is_first %}"
    "{{'<\uff5cAssistant\uff5c>' + tool['type'] + tool['function']['name'] + "
    "'\n' + '```json' + '\n' + (tool['function']['arguments'] | tojson) + "
    "'\n' + '```'}}{%- set ns.is_first = true -%}{%- else %}{{'\n' + "
    "tool['type'] + tool['function']['name']}}{%- endif %}{%- endfor %}"
    "{%- endif %}{%- if message['role'] == 'assistant' and "
    "message['content'] is not none and message['content'] is defined %}"
    "{%- if ns.is_tool %}{{'<outputs>' + message['content'] + '<end>'}}"
    "{%- set ns.is_tool = false -%}{%- else %}"
    "{% set content = message['content'] %}{% if '</think>' in content %}"
    "{% set content = content.split('</think>')[-1] %}{% endif %}"
    "{{'<\uff5cAssistant\uff5c>' + content + '<end>'}}{%- endif %}"
    "{%- endif %}{%- if message['role'] == 'tool' %}"
    "{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}"
    "{{'<begin>' + message['content'] + '<e>'}}"
    "{%- set ns.is_output_first = false %}{%- else %}"
    "{{'\n<more>' + message['content']}}{%- endif %}{%- endif %}"
    "{%- endfor -%}{% if ns.is_tool %}{{'<outputs end>'}}{% endif %}"
    "{% if add_generation_prompt and not ns.is_tool %}"
    "{{'<\uff5cAssistant\uff5c><think>\\n'}}{% endif %}"
)

COMMAND_R = """{%- macro json_to_python_type(spec) %}
{%- set basic = {"string": "str", "number": "float", "integer": "int", "boolean": "bool"} %}
{%- if basic[spec.type] is defined %}
    {{- basic[spec.type] }}
{%- elif spec.type == "array" %}
    {{- "List[" + json_to_python_type(spec["items"]) + "]" }}
{%- elif spec.type == "object" %}
    {{- "Dict[str, Any]" }}
{%- else %}
    {{- "Any" }}
{%- endif %}
{%- endmacro %}
{{- bos_token }}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- set loop_messages = messages[1:] %}
    {%- set system_message = messages[0]['content'] %}
{%- else %}
    {%- set loop_messages = messages %}
    {%- set system_message = '## Task and Context\\nHelp.' %}
{%- endif %}
{{- '<|SYSTEM|>' ~ system_message }}
{%- for tool in tools or [] %}
    {%- set tool = tool.function or tool %}
    {{- '\\ndef ' + tool.name + '(' }}
    {%- for name, spec in (tool.parameters.properties or {}).items() %}
        {%- if loop.index0 != 0 %}{{ ', ' }}{% endif -%}
        {{- name + ': ' }}
        {%- if name in tool.parameters.required %}
            {{- json_to_python_type(spec) }}
        {%- else %}
            {{- 'Optional[' ~ json_to_python_type(spec) ~ '] = ' ~ spec.default }}
        {%- endif %}
    {%- endfor %}
    {{- '):\\n    \"\"\"' ~ tool.description ~ '\"\"\"' }}
{%- endfor %}
{%- for message in loop_messages %}
    {%- set content = message['content'] %}
    {%- if message.role == 'user' %}
        {{- '<|USER|>' ~ content | trim ~ '<|END|>' }}
    {%- elif message.role == 'assistant' and message.tool_calls %}
        {{- '<|CHATBOT|>Action: ' }}
        {%- for call in message.tool_calls %}
            {{- {"tool_name": call.function.name, "parameters": call.function.arguments} | tojson(indent=4) }}
            {%- if not loop.last %}{{ ',' }}{% endif %}
        {%- endfor %}
    {%- elif message.role == 'assistant' %}
        {{- '<|CHATBOT|>' ~ content ~ '<|END|>' }}
    {%- else %}
        {{- '<results>' ~ loop.index0 ~ '\\n' ~ content ~ '</results>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|CHATBOT|>' }}{%- endif %}"""

GENERATION = """{%- for message in messages -%}
    {%- if message.role == "assistant" -%}
        {{- "<|assistant|>\\n" -}}
        {% generation %}
        {{- message.content + eos_token }}
        {% endgeneration %}
    {%- else -%}
        {{ "<|" ~ message.role ~ "|>\\n" ~ message.content ~ "\\n" }}
    {%- endif -%}
{%- endfor -%}
{% if add_generation_prompt %}<|assistant|>
{% endif %}"""

GENERATION_BLOCKS = """{% for message in messages %}
  {% if message.role == "assistant" %}
    {% generation %}
    [{{ message.content }}]
    {% endgeneration %}
  {% else %}
    ({{ message.content }})
  {% endif %}
{% endfor %}
"""

LOOP_CONTROLS = """{%- for m in messages -%}
{%- if m.role == 'system' -%}{%- continue -%}{%- endif -%}
{%- if loop.index > 4 -%}{{ '...' }}{%- break -%}{%- endif -%}
{{ loop.index }}/{{ loop.length }}/{{ loop.revindex }}/{{ loop.revindex0 }} {{ m.role }}
{{- ' first' if loop.first }}{{ ' last' if loop.last }}
{{- ' after ' ~ loop.previtem.role if loop.previtem is defined }}
{{- ' before ' ~ loop.nextitem.role if loop.nextitem is defined }} {{ loop.cycle('a', 'b') }}{{ loop.changed(m.role) }}
{% else -%}
nothing
{%- endfor -%}"""

GRANITE = """{%- if tools %}
    {{- '<|role|>tools<|/role|>' }}
    {{- tools | map(attribute='function') | list | tojson(indent=2) }}
    {{- '<|eot|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' and 'tool_calls' in message %}
        {{- '<|tool_call|>' + message.tool_calls|map(attribute='function')|list|tojson }}
    {%- else %}
        {{- '<|role|>' + message['role'] + '<|/role|>' + (message['content'] or 'none') + '<|eot|>\n' }}
    {%- endif %}
    {%- if loop.last and add_generation_prompt %}
        {{- '<|role|>assistant' }}
        {%- if controls %}{{- ' ' + controls | tojson }}{%- endif %}
        {{- '<|/role|>' }}
    {%- endif %}
{%- endfor %}"""

HERMES_NESTED = """{%- macro render(value, depth=0) -%}
{%- if value is mapping -%}
{%- for k, v in value | dictsort -%}
{{ '  ' * depth }}{{ k }}:
{{ render(v, depth + 1) }}
{%- endfor -%}
{%- elif value is iterable and value is not string -%}
{%- for v in value %}{{ '  ' * depth }}- {{ v }}
{% endfor -%}
{%- else -%}
{{ '  ' * depth }}{{ value }}
{% endif -%}
{%- endmacro -%}
{%- for tool in tools or [] -%}{{ render(tool.function) }}{%- endfor -%}
{%- call(x) wrap() -%}{%- endcall -%}"""
HERMES_NESTED = HERMES_NESTED.replace(
    "{%- call(x) wrap() -%}{%- endcall -%}",
    "{%- macro wrap(t) -%}<{{ t }}>{{ caller() }}</{{ t }}>{%- endmacro -%}"
    "{%- for m in messages -%}{%- call wrap(m.role) -%}{{ m.content }}"
    "{%- endcall -%}{%- endfor -%}",
)

PYTHON_TEXT = """{{ none }} {{ true }} {{ false }} {{ 1 }} {{ 1.0 }} {{ 0.1 + 0.2 }} {{ 1e20 }} {{ 1e-7 }} {{ 7 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }}
{{ [1, 'a', "it's", none, true, 1.5] }} {{ {'k': 'v', 'n': none, 'l': [1, {'x': 2}]} }} {{ (1, 'b') }} {{ ('x',) }} {{ () }} {{ [] }} {{ {} }}
{{ 'n' ~ none ~ true ~ 1.0 ~ [1, 'x'] ~ {'a': false} }}
{{ none | string }} {{ true | string }} {{ [1, none] | join('-') }} {{ ['a\\n', 'b"c', 'd\\'e', '\\t\\\\'] }}
{{ 'caf\u00e9 \u4f60' }} {{ ['caf\u00e9 \u4f60 \U0001f600'] }}
{{ messages[0] }}
{{ undefined_thing }}|{{ undefined_thing | default('d') }}|{{ messages[0].nope }}|{{ messages[99] }}|{{ messages[0].get('nope') }}|{{ messages[0].get('nope', 'x') }}"""

STRINGS = """{%- set s = "  Hello, World: it's me  " -%}
[{{ s.strip() }}][{{ s.lstrip() }}][{{ s.rstrip() }}][{{ s.strip(' He') }}][{{ s.upper() }}][{{ s.lower() }}][{{ s.title() }}][{{ s.strip().capitalize() }}]
[{{ s.split() }}][{{ s.split(',') }}][{{ s.split(' ', 2) }}][{{ s.rsplit(' ', 1) }}][{{ 'a,b,,c'.split(',') }}][{{ ''.split(',') }}][{{ ''.split() }}]
[{{ s.replace('l', 'L') }}][{{ s.replace('l', 'L', 1) }}][{{ s.find('World') }}][{{ s.find('zzz') }}][{{ s.count('l') }}][{{ s.startswith('  H') }}][{{ s.endswith(('x', '  ')) }}][{{ 'abc'.removeprefix('a') }}][{{ 'abc'.removesuffix('c') }}]
[{{ 'a-b-c'.partition('-') }}][{{ 'a-b-c'.rpartition('-') }}][{{ ', '.join(['x', 'y']) }}][{{ 'x' in 'xyz' }}][{{ 'abc'[0] }}{{ 'abc'[-1] }}{{ 'abcdef'[1:4] }}{{ 'abcdef'[::-1] }}{{ 'abcdef'[-2:] }}{{ 'abcdef'[::2] }}]
[{{ 'ab' * 3 }}][{{ 'l1\\nl2\\r\\nl3'.splitlines() }}][{{ '42'.isdigit() }}][{{ '42' | int + 1 }}][{{ '1.5' | float }}][{{ 'x' | int }}][{{ '7'.zfill(3) }}][{{ 'a b' | title }}][{{ '\u00e9\u00df'.upper() }}]
[{{ 'abc' | length }}][{{ 'h\u00e9llo' | length }}][{{ 'abc' | reverse }}][{{ 'abc' | first }}][{{ 'abc' | last }}][{{ 'a' < 'b' }}][{{ '%s is %d' | format('x', 5) }}][{{ 'a{}b{}'.format(1, 'z') }}][{{ 'x' | upper | lower | capitalize }}][{{ ' t ' | trim }}][{{ 'xxtxx' | trim('x') }}][{{ 'a.b' | replace('.', '!') }}]
[{{ 'tab\\there' }}][{{ 'q\\'q' }}][{{ "d\\"d" }}][{{ '\\u4f60' }}][{{ '\\\\' }}][{{ 'a\\/b' }}]"""

LISTS = """{%- set xs = [3, 1, 2, 3] -%}
{{ xs | length }} {{ xs | sort }} {{ xs | unique | list }} {{ xs | sum }} {{ xs | min }} {{ xs | max }} {{ xs | first }} {{ xs | last }} {{ xs | reverse | list }} {{ xs | join(',') }} {{ xs[1:] }} {{ xs[:-1] }} {{ xs[::-1] }} {{ xs[-1] }} {{ xs + [9] }} {{ 3 in xs }} {{ 4 not in xs }} {{ xs.index(2) }} {{ xs.count(3) }} {{ xs | map('string') | join('') }} {{ xs | select('odd') | list }} {{ xs | reject('equalto', 3) | list }} {{ xs | batch(2) | list }} {{ range(3) | list }} {{ range(1, 6, 2) | list }} {{ xs == [3, 1, 2, 3] }} {{ xs is sequence }} {{ xs is iterable }} {{ xs is mapping }} {{ xs is string }}
{%- set d = {'b': 1, 'a': [1, 2], 'c': none} %}
{{ d.keys() | list }} {{ d.values() | list }} {{ d.items() | list }} {{ d | items | list }} {{ d | dictsort }} {{ d.b }} {{ d['a'][1] }} {{ 'a' in d }} {{ d | length }} {{ d is mapping }} {{ d is iterable }} {{ d is sequence }} {{ d.get('zz') is none }} {{ d | list }} {{ dict(x=1, y='z') }} {{ d.c is none }} {{ d.zz is defined }} {{ d.zz is undefined }}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %} {% for a, b in [(1, 2), (3, 4)] %}{{ a + b }} {% endfor %}
{{ messages | map(attribute='role') | join(' ') }} {{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list }} {{ messages | rejectattr('role', 'equalto', 'user') | list | length }} {{ (messages | last).role }} {{ messages | groupby('role') | map(attribute='grouper') | list }}"""

TESTS = """{{ none is none }} {{ 1 is number }} {{ true is number }} {{ 1.0 is float }} {{ 1 is integer }} {{ true is integer }} {{ true is boolean }} {{ 'x' is string }} {{ 'x' is sequence }} {{ 'x' is iterable }} {{ 1 is iterable }} {{ x is defined }} {{ x is undefined }} {{ not x }} {{ x is none }} {{ 2 is even }} {{ 3 is odd }} {{ 4 is divisibleby 2 }} {{ 1 is eq 1 }} {{ 1 is in [1] }} {{ true is true }} {{ 1 is true }} {{ false is false }} {{ 1 == 1.0 }} {{ 1 == true }} {{ 'a' == 'a' }} {{ none == false }} {{ [] == false }} {{ 'yes' if [] else 'no' }} {{ 'yes' if '' else 'no' }} {{ 'yes' if {} else 'no' }} {{ 'yes' if 0.0 else 'no' }} {{ 'a' and 'b' }} {{ '' or 'b' }} {{ none or 0 }} {{ not none and 1 }} {{ 1 < 2 < 3 }} {{ tools is none }} {{ tools is defined }} {{ documents is none }} {{ 1 if false }}|"""

TOJSON = """{%- for tool in tools or [] -%}
{{ tool | tojson }}
{{ tool | tojson(indent=2) }}
{{ tool | tojson(indent=0) }}
{{ tool | tojson(ensure_ascii=true) }}
{{ tool | tojson(separators=(',', ':')) }}
{{ tool.function.parameters | tojson(indent=4, separators=(',', ': '), sort_keys=true) }}
{% endfor -%}
{{ messages | tojson }}
{{ [1, 1.0, 1e20, 1e-7, -0.5, true, false, none, "a\\"b\\\\c\\n\\t\\u0001\\u007f/<>&'", [], {}] | tojson }} {{ 'x\u2028y\U0001f600' | tojson }} {{ 'x\U0001f600' | tojson(ensure_ascii=true) }}"""

WHITESPACE = """
{# comment #}
  {% if true %}
    indented
  {% endif %}
a {%- if true %} b {%- endif %} c
{%+ if true %}kept{% endif +%}
{{ 'x' -}}

   y
{{- 'z' }}
  {%- for i in range(2) %}
  {{ i }}
  {%- endfor %}

{% raw %}{{ not rendered }} {% generation %}{% endraw %}

{% set block %}
  captured {{ 1 }}
{% endset %}
[{{ block }}]
{% filter upper %}shout{% endfilter %}
{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}

{% if false %}{% elif true %}elif{% else %}else{% endif %}
end\r
two\r\nthree


"""

SCOPES = """{%- set x = 1 -%}
{%- for i in range(3) -%}{%- set x = x + i -%}{{ x }} {% endfor -%}
{{ x }}
{%- if true -%}{%- set x = 10 -%}{%- endif %} {{ x }}
{%- set ns = namespace(a=1, b=[]) -%}
{%- for i in range(3) -%}{%- set ns.a = ns.a + i -%}{%- set ns.b = ns.b + [i] -%}{%- endfor %} {{ ns.a }} {{ ns.b }}
{%- macro f(a, b=2, c=none) -%}({{ a }},{{ b }},{{ c }},{{ varargs | default([]) | length }}){%- endmacro %} {{ f(1) }} {{ f(1, c=3) }} {{ f(b=5, a=4) }}
{%- set a, b = 1, 2 %} {{ a }}{{ b }} {{ 'in' if 'x' is in ['x'] else 'out' }} {{ [x, a] | max }}
{%- for m in messages recursive %} {{ m.role }}{% if m.kids %}{{ loop(m.kids) }}{% endif %}{% endfor %}
{%- for m in messages if m.role == 'user' %} {{ loop.index }}:{{ m.content }}{% else %} none{% endfor %}"""

DICT_KEYS = """{%- for tool in tools or [] -%}
{%- for name, spec in (tool.function.parameters.properties or {}).items() -%}
{{ name }}{%- for k, v in spec.items() -%}({{ k }}={{ v }}){%- endfor -%}
{{ spec.get('type', '?') }}{{ spec | items | list }}
{%- endfor -%}
{%- endfor -%}
{%- set odd = {'items': 1, 'get': 2, 'keys': 3, 'values': 4} -%}
{{ odd.items() | list }}{{ odd.get('get') }}{{ odd.keys() | list }}{{ odd.values() | list }}{{ odd['items'] }}"""

MISC = """{%- set parts = namespace(text='', n=0) -%}
{%- for m in messages -%}
{%- if m.content is string -%}
{%- set parts.text = parts.text ~ m.content -%}
{%- elif m.content is not none and m.content is defined -%}
{%- for p in m.content if p.type == 'text' -%}{%- set parts.text = parts.text + p.text -%}{%- endfor -%}
{%- set parts.n = parts.n + (m.content | selectattr('type', 'in', ['image', 'image_url']) | list | length) -%}
{%- endif -%}
{%- endfor -%}
{{ parts.text }} {{ parts.n }} {{ (parts.text ~ '!') | upper }} {{ messages[-1].role }} {{ messages[-1]['role'] == messages[0].role }}
{{ 'l1\nl2' | indent(4) }} {{ 'l1\nl2' | indent(2, true) }} {{ ' a , b ' | trim }} {{ [' a', 'b '] | map('trim') | join('|') }} {{ messages | map(attribute='role') | unique | sort | join(',') }}
{{ 'x' if messages | length > 1 else 'y' }} {{ not 'z' in 'xyz' }} {{ 'a' ~ 1 ~ 2.5 }} {{ (1, 2) + (3,) }} {{ [1] + [2] }} {{ [0] * 3 }} {{ 'abc' | list }} {{ 10 | string | length }} {{ 3.7 | int }} {{ 3.14159 | round(2) }} {{ 2.5 | round }} {{ -3 | abs }} {{ 'b' | replace('b', 'B') | safe }} {{ '<&>' | e }} {{ 5 is divisibleby(5) }} {{ {'a': {'b': [1, {'c': 2}]}}.a.b[1].c }}
{{ ['a', 'b'] | first }} {{ [] | first | default('none') }} {{ [] | last is defined }} {{ nothing | default(messages[0].role, true) }} {{ '' | default('e', true) }} {{ '' | default('e') }} {{ none | default('n') }} {{ (nothing.x is defined) if nothing is defined else 'undef' }}
{% set x %}{% for i in [1,2] %}{{ i }}{{ ',' if not loop.last }}{% endfor %}{% endset %}{{ x | trim }} {{ x is string }}
{%- macro m(a) %}[{{ a }}{{ caller() if caller is defined }}]{% endmacro %} {{ m('q') }} {% call m('r') %}body{% endcall %} {{ m(a='s') | upper }}
{{ "{% generation %}" }} {{ '{{' }} {{ '\U0001F600 \x41 \101 \d \s' }} {{ 'one' 'two' }} {{ 1_000 }} {{ 0x1F }} {{ 1e3 }} {{ true and 'yes' or 'no' }} {{ True }} {{ None }} {{ False }}
{{- strftime_now('') }}"""

NULLS = """{%- for m in messages -%}
{{ m.role }}:{{ m.content if m.content is not none else 'NULL' }}:{{ 'content' in m }}:{{ m.keys() | list }}:{{ m.thinking is defined }}
{% endfor -%}"""

TEMPLATES = {
    "chatml": (CHATML, PLAIN),
    "smollm": (SMOL, PLAIN),
    "llama2": (LLAMA2, PLAIN),
    "llama3": (LLAMA3, ALL),
    "qwen2.5": (QWEN25, ALL),
    "qwen3": (QWEN3, ALL),
    "mistral": (MISTRAL, ALL),
    "gemma2": (GEMMA2, PLAIN),
    "gemma3": (GEMMA3, PLAIN + ["parts"]),
    "phi3": (PHI3, PLAIN),
    "phi4-mini": (PHI4MINI, PLAIN),
    "deepseek": (DEEPSEEK, ALL),
    "command-r": (COMMAND_R, ALL),
    "generation": (GENERATION, PLAIN),
    "generation-blocks": (GENERATION_BLOCKS, ["turns"]),
    "loop-controls": (LOOP_CONTROLS, ["long", "user"]),
    "granite": (GRANITE, ALL),
    "nested-macros": (HERMES_NESTED, ["turns", "tools"]),
    "python-text": (PYTHON_TEXT, ["user", "parts"]),
    "strings": (STRINGS, ["user"]),
    "lists": (LISTS, ["long"]),
    "tests": (TESTS, ["user"]),
    "tojson": (TOJSON, ["tools", "two_tools", "parts"]),
    "whitespace": (WHITESPACE, ["user"]),
    "scopes": (SCOPES, ["turns"]),
    "dict-keys": (DICT_KEYS, ["tools", "user"]),
    "misc": (MISC, ["turns", "parts", "user"]),
    "nulls": (NULLS, ["tools", "two_tools", "reasoning"]),
}

KWARGS = {
    "llama3": {"date_string": "1 Jan 2030", "builtin_tools": ["a", "code_interpreter"]},
    "qwen3": {"enable_thinking": False},
    "granite": {"controls": {"length": "long", "originality": 0.5}},
}

# What every renderer must refuse, with the words it must say.
BROKEN = {
    "syntax": ("a\n{% if x %}\nb", "line"),
    "unknown-tag": ("\n\n{% nonsense %}", "line 3"),
    "raise": ("{{ raise_exception('no ' ~ messages[0].role) }}", "no user"),
    "missing-attribute": ("x\n{{ messages[0].a.b }}", "line 2"),
    "wrong-type": ("{{ 'a' + 1 }}", "line 1"),
    "unknown-method": ("\n{{ 'a'.frobnicate() }}", "line 2"),
    "undefined-json": ("{{ nope | tojson }}", "line 1"),
}


def render(tok, source: str, run: dict) -> dict:
    """The run with transformers' text, or the words of its refusal."""
    import jinja2

    try:
        text = tok.apply_chat_template(
            run["messages"],
            tools=run["tools"],
            chat_template=source,
            add_generation_prompt=run["add_generation_prompt"],
            tokenize=False,
            **run["kwargs"],
        )
        return {**run, "text": text}
    except jinja2.exceptions.TemplateError as error:
        raised = type(error) is jinja2.exceptions.TemplateError
        return {**run, "error": str(error) if raised else ""}
    except (TypeError, IndexError, KeyError):
        return {**run, "error": ""}


def template_goldens(model: Path | None) -> dict:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast
    from transformers.utils.chat_template_utils import (
        _compile_jinja_template,
    )

    tok = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.BPE()), **SPECIAL
    )
    templates = dict(TEMPLATES)
    if model is not None:
        from gguf import GGUFReader

        field = GGUFReader(model).fields["tokenizer.chat_template"]
        templates["real model"] = (field.contents(), PLAIN)
    cases = []
    for name, (source, conversations) in templates.items():
        _compile_jinja_template(source)  # a syntax error is ours
        runs = []
        for conversation in conversations:
            tools = [WEATHER, CLOCK] if "tools" in conversation else None
            options = [({}, True), ({}, False)]
            if name in KWARGS:
                options.append((KWARGS[name], True))
            for kwargs, prompt in options:
                run = {
                    "conversation": conversation,
                    "messages": CONVERSATIONS[conversation],
                    "tools": tools,
                    "kwargs": kwargs,
                    "add_generation_prompt": prompt,
                }
                run = render(tok, source, run)
                # Conversations and tools are kept once, by name.
                run.pop("messages")
                run["tools"] = tools is not None
                runs.append(run)
        cases.append({"name": name, "source": source, "runs": runs})
    for name, (source, words) in BROKEN.items():
        run = {"messages": CONVERSATIONS["user"], "tools": None,
               "kwargs": {}, "add_generation_prompt": False}
        assert "error" in render(tok, source, run), name
    return {
        "special": SPECIAL,
        "conversations": CONVERSATIONS,
        "tools": [WEATHER, CLOCK],
        "cases": cases,
        "broken": [
            {"name": n, "source": s, "words": w}
            for n, (s, w) in BROKEN.items()
        ],
    }
