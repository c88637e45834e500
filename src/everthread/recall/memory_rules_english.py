"""The English rules of `memory_rules`, in the order in which they are tried.

Most know what is said and put it into words of their own; those of `_EN_WHOLE` and `_EN_MORE` know only that such a
sentence is worth keeping.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from everthread.core.memories import MemoryKind
from everthread.recall.memory_wording import (
    NO_FOOD,
    REST,
    ExtractedMemory,
    Rule,
    explicit_request,
    favourite,
    health,
    instruction,
    profile,
    taste,
    whole,
)

_NAME = (
    r"(?P<x>[^\W\d_][\w'.-]{0,29}(?: (?-i:[A-Z])[\w'.-]{0,29}){0,3})"
    r"(?=$|[,.!;]|\s+(?:and|but|from|instead|by the way)\b)"
)
_THING = (
    r"(?P<x>[^,.;!?:]{2,60}?)(?=$|[.;!]|,|\s+(?:and (?:i|my)\b|but\b|because\b|so\b|since\b|when\b"
    r"|as (?:i|a|well)\b|last\b|this\b|next\b|now\b|any ?more\b|at the moment\b|right now\b|ago\b"
    r"|for (?:a|the|\d)|with my\b|after all\b|again\b))"
)
_ADVERB = r"(?:(?:really|also|strongly|generally|usually|always|much|still|just|absolutely|truly|quite|very much|do) )*"
_WORK = (
    "teacher|nurse|doctor|physician|student|engineer|software engineer|developer|programmer|lawyer|designer|writer"
    "|journalist|accountant|architect|scientist|researcher|professor|chef|driver|pilot|farmer|musician|artist|manager"
    "|product manager|data scientist|analyst|consultant|translator|pharmacist|dentist|veterinarian|electrician|plumber"
    "|carpenter|photographer|librarian|economist|psychologist|therapist|founder|freelancer|retiree"
)
_DIETS = (
    "vegan|vegetarian|pescatarian|veggie|lactose[- ]intolerant|gluten[- ]intolerant|diabetic|celiac|coeliac"
    "|kosher|halal"
)
_NO_PLACE = (
    "(?:python|kubernetes|slack|teams|notion|linear|jira|git|docker|linux|windows|mac|macos|ubuntu|aws|azure|gcp"
    "|postgres\\w*|mysql|mongo\\w*|redis|sqlite|kafka|datadog|grafana|prometheus|jenkins|git\\w+|bitbucket|terraform|ansible"
    "|helm|bazel|gradle|maven|npm|pnpm|yarn|poetry|uv|angular|svelte|next\\w*|django|flask|spring|kotlin|swift|scala|c\\b"
    "|microsoft|google|office|outlook|gmail|zoom|discord|trello|asana|confluence|figma|salesforce|hubspot|stripe|shopify"
    "|chrome|firefox|safari|claude|gpt\\w*|openai|anthropic|gemini|scrum|kanban|agile|sprints?|monday\\b|tuesday|wednesday"
    "|thursday|friday|saturday|sunday|january|february|march|april|may\\b|june|july|august|september|october|november"
    "|december|q[1-4]|phase|stage|page|slide|level|python\\w*|debian|fedora|arch|android|ios|cloudflare|vercel|heroku"
    "|react|vim|neovim|emacs|vs|rust|go|java|typescript|version|option|plan|part|chapter|step)\\b"
)
_KIN = (
    "wife|husband|partner|girlfriend|boyfriend|son|daughter|mother|mom|mum|father|dad|brother|sister|dog|cat|boss"
    "|manager|doctor|company|team|project"
)
_DETAILS = (
    "birthday|email|email address|phone|phone number|job|profession|hometown|native language|mother tongue"
    "|time ?zone|nationality|blood type|shoe size|age|star sign|pronouns"
)
_ORDERS = (
    "answer|reply|respond|use|write|call|speak|talk|explain|give|show|include|add|ask|tell|send|format|keep|put|cite"
    "|translate|mention|suggest|recommend|assume|round|sign|address|start|end|avoid|do not|don't|be|make|summari[sz]e"
)


def _en(pattern: str, build: Callable[[re.Match[str]], ExtractedMemory | None], *, sample: str) -> Rule:
    return Rule(pattern, re.IGNORECASE, build, sample)


_LANGUAGES = (
    "english|german|french|spanish|italian|portuguese|dutch|polish|russian|ukrainian|turkish|arabic|hindi|chinese"
    "|mandarin|cantonese|japanese|korean|swedish|norwegian|danish|finnish|greek|hebrew|czech|hungarian|romanian"
)
_EN_KIN = (
    f"{_KIN}|wife's|husband's|parents|kids|children|twins|baby|fianc[eé]e?|grandmother|grandma|grandfather|grandpa"
    "|aunt|uncle|cousin|niece|nephew|roommate|flatmate|neighbou?r|colleague|landlord|therapist|coach|teacher|pet"
)
_POSSESSIONS = (
    "editor|ide|laptop|computer|machine|phone|tablet|car|bike|keyboard|camera|printer|router|os|operating system|shell"
    "|terminal|browser|budget|deadline|goal|dream|plan|home ?town|website|blog|handle|username|user name|address"
    "|work|major|field|degree|religion|height|weight|hobby|hobbies|school|university|office|house|flat|apartment|garden"
    "|anniversary|first language|second language|mother tongue|salary|income|rent|thesis|pronouns|surname|last name"
    "|middle name|nickname|instrument|stack|setup|eyesight|blood pressure|working hours|schedule|time ?zone|size"
)
_LASTING_NOUNS = (
    "kids?|child(?:ren)?|sons?|daughters?|brothers?|sisters?|siblings?|twins|dogs?|cats?|parrots?|rabbits?|horses?"
    "|pets?"
    "|grandchild(?:ren)?|allerg(?:y|ies)|diabetes|asthma|adhd|autism|migraines?|epilepsy|depression|anxiety|arthritis"
    "|dyslexia|insomnia|eczema|phd|degree|master's|bachelor's|diploma|cars?|motorcycle|motorbike|bike|boat|house|flat"
    "|apartment|garden|driving licen[cs]e|licen[cs]e|iphone(?: \\w+)?|android|macbook|mac|ipad|thinkpad|tattoos?"
    "|pacemaker"
    "|hearing aid|condition|disease|disorder|intolerance|subscription|company|business|shop|startup|farm"
)
_STATES = (
    "learning|studying|training for|saving (?:up )?for|planning to|expecting|getting married|getting divorced|moving to"
    "|living (?:in|with|on)|based in|working (?:at|for|as|in|part|full|from)|married|divorced|single|widowed|pregnant"
    "|retired|engaged|vegan|vegetarian|left[- ]handed|right[- ]handed|colou?r[- ]?blind|blind|deaf|dyslexic|diabetic"
    "|catholic|muslim|jewish|hindu|buddhist|christian|protestant|atheist|religious|on (?:windows|macos|linux|ubuntu"
    "|debian"
    "|fedora|arch|android|ios)|[\\d.,]+ ?(?:m|cm|feet|ft|kg|pounds)\\b|in my (?:\\w+ies)|afraid of|scared of|into"
    "|fluent in"
    "|bilingual|responsible for|in charge of|lactose|gluten|sensitive to|unable to (?:eat|drink|drive)|self-employed"
    "|unemployed|originally|half |new to"
    r"|on (?:the |a )?(?:night|day|early|late) shifts?|the (?:ceo|cto|founder|owner|head|manager|lead|mother|father)"
)
_HABIT_VERBS = (
    "drive|play|support|wear|cycle|own|teach|study|coach|collect|sing|paint|volunteer|commute|suffer from|grew up"
    "|was born|was raised|was diagnosed|got diagnosed|come from|graduated|studied|quit|gave up|stopped"
    "|run an? (?!test|script"
    "|query|command|job|check)|take (?:\\d|a pill|medication|insulin|pills)|get up at|wake up|go to (?:bed at"
    "|the gym|church"
    "|school|university|yoga|therapy)|sleep|work (?:from|nights|part|full|in|on weekends|remotely)|bake|knit|garden"
    "|swim|run every"
    "|read (?:a lot|mostly|only)|listen to|watch (?:a lot|only)|meditate|fast|pray|smoke|vote|weigh|earn|rent|share"
    "|manage|lead|maintain|mostly|mainly|believe in|donate|ride|fish|hunt|sail|climb|ski|dance|write (?:for|novels"
    "|poems)"
)
_EN_WHOLE: Final[tuple[Rule, ...]] = (
    _en(r"we(?:'re| are)?(?: now)? (?:move|moved|moving) (?:the|our) [a-z][a-z -]{2,24}? to (?-i:[A-Z])[^?]{1,80}$",
        whole(MemoryKind.FACT),
        sample="we moved our warehouse to Antwerp"),
    _en(r"i (?:do )?(?:now )?(?:eat|drink) [a-z][a-z ]{1,30} (?:these days|nowadays|now)$", whole(MemoryKind.FACT),
        sample="I eat meat these days"),
    _en(r"(?:from now on|going forward),? (?:only )?(?:metric|imperial)(?: units| system)?$",
        whole(MemoryKind.INSTRUCTION),
        sample="from now on imperial units"),
    _en(rf"(?:{_LANGUAGES}) is (?:not )?my (?:first|native|second|third|mother) (?:language|tongue)$",
        whole(MemoryKind.PROFILE),
        sample="Danish is my first language"),
    _en(rf"my (?:{_EN_KIN})(?:'s)?(?: [\w'-]+)? (?:is|are|has|have|lives?|works?|was|can't|cannot|doesn't|don't|likes?"
        rf"|loves?|hates?|studies|goes|turns|suffers?|plays?|needs?|speaks?|drives?|uses?) "
        rf"(?!here|coming|calling|asking|waiting|late|sleeping|at the|on the phone|back|out|right|wrong|ok"
        rf"|annoy|an idiot|driving me|killing me|a (?:nightmare|pain|joke|genius|saint|legend)"
        rf"|fine){REST}",
        whole(MemoryKind.FACT),
        sample="My uncle has gout"),
    _en(rf"my (?:new |main |current |own |work |home |monthly |weekly |daily |total |github |twitter |usual |old "
        rf"|first )*"
        rf"(?:{_POSSESSIONS})(?: handle| name| is| for| at| on| number)?[^.]{{0,60}}?(?:is|are|runs|has|have|:) "
        rf"(?!broken|slow|down|crash|not working|wrong|gone|dead|stuck|delayed){REST}", whole(MemoryKind.FACT),
        sample="My monthly budget is 900 euros"),
    _en(rf"(?:i(?:'ve| have)? got|i have|i own|i keep|i've|we have|we've got|we own)(?! to\b| a (?:question|problem"
        rf"|feeling"
        rf"|look|meeting|call|doubt)| no (?:idea|clue|time"
        rf"|problem)) (?:[\w.,'-]+ ){{0,5}}?(?:{_LASTING_NOUNS})\b[^?]{{0,120}}$",
        whole(MemoryKind.FACT),
        sample="I have three cats"),
    _en(rf"i (?:{_HABIT_VERBS}) ?[^?]{{0,150}}$", whole(MemoryKind.FACT),
        sample="I play the oboe"),
    _en(rf"i (?:only|mostly|mainly|exclusively) (?:drink|eat|wear|listen to|watch|read|buy|speak|fly with|cook|shop)"
        rf" (?!the\b|this|that|it\b|them|half|part|one\b|a\b|an\b|your){REST}", whole(MemoryKind.PREFERENCE),
        sample="I only drink decaf"),
    _en(rf"i (?:live|work)(?: in| at| for| with| near) (?!fear|hope|denial|it\b|this\b|that\b|you\b|me\b|moments)"
        rf"{REST}",
        whole(MemoryKind.FACT),
        sample="I live near the harbour"),
    _en(rf"(?:i|we) (?:currently |mostly |mainly |usually |only |still )*use (?!this|that|it\b|your|the (?:same"
        rf"|following|command"
        rf"|code|function|example|above)|an? (?:for|while|loop|regex|if)|them){REST}", whole(MemoryKind.FACT),
        sample="I use a trackball"),
    _en(rf"i (?:always|never|usually|normally|typically|generally|often|rarely|hardly ever) (?!said|say that"
        rf"|get (?:this|the|an?)"
        rf"|heard|seen|saw|tried|thought|knew|had|understood|asked|wanted|meant|forget|wonder){REST}",
        whole(MemoryKind.FACT),
        sample="I usually get up at five"),
    _en(rf"i(?:'m| am)(?: not| also| currently| actually"
        rf"| really)? (?:{_STATES})\b[^?]{{0,150}}$", whole(MemoryKind.FACT),
        sample="I'm left-handed"),
    _en(r"i(?:'m| am) (?:a|an) (?!bit|little|lot|few|idiot|moment|second|hour)(?:[\w'-]+ ){0,4}[\w'-]+(?: (?:of|at"
        r"|in|by|from"
        r"|for|who|and|with)\b[^?]{0,80})?$", whole(MemoryKind.FACT),
        sample="I'm a retired postman"),
    _en(r"i (?:can't|cannot|can not|don't|do not|mustn't|must not|may not|am not allowed to)"
        r" (?!\w+ (?:and|another|like|this|that|much|enough|too)\b)(?:eat|drink"
        r"|have (?:a car|kids|pets"
        r"|children)|tolerate|drive|swim|stand|like|smoke|own|hear well|see well|fly|celebrate)\b[^?]{0,120}$",
        whole(MemoryKind.FACT),
        sample="I can't drive"),
    _en(rf"i(?:'d| would) (?:rather|prefer) (?!not (?:do|say)|that|to (?:do|go|see)|if|it|the (?:first|second)){REST}",
        whole(MemoryKind.PREFERENCE),
        sample="I'd rather take the stairs"),
    _en(rf"we (?:are |eat )?(?:{_DIETS})\b[^?]{{0,60}}$", whole(MemoryKind.FACT),
        sample="We're vegan at home"),
    _en(rf"(?:we|our family) (?:live|moved|have moved|are expecting|are getting|'re expecting|have lived"
        rf"|are moving) {REST}"
        rf"|we're (?:expecting|getting married|moving to|based in|a family|a team|a company) ?{REST}",
        whole(MemoryKind.FACT),
        sample="We're expecting twins"),
    _en(rf"our (?:team|company|cat|dog|son|daughter|house|office|stack|product|shop|policy|startup|school|servers?"
        rf"|database"
        rf"|production|baby|kids|children|app|website|budget|standup)(?:'s)?(?: [\w'-]+)? (?:is|are|uses?|runs?"
        rf"|lives?|has|have"
        rf"|was|meets?|starts?) (?!down|broken|slow|late){REST}", whole(MemoryKind.FACT),
        sample="Our team uses Mercurial"),
    _en(rf"you can (?:reach|find|email|contact|text) me (?:at|on|under|via) {REST}", whole(MemoryKind.FACT),
        sample="You can reach me at 555-0199"),
    _en(rf"as an? [\w -]{{3,30}},? i {REST}", whole(MemoryKind.FACT),
        sample="As a glazier I get up early"),
    _en(rf"for all (?:my|our|of my|of our) {REST}", whole(MemoryKind.INSTRUCTION),
        sample="For all my recipes, give weights in grams"),
    _en(rf"(?:please )?(?:answer|reply|respond|speak|talk)(?: to me)?(?: only| always)? in (?:{_LANGUAGES}|one|two"
        rf"|full|short|plain"
        rf"|simple|bullet)\b[^?]{{0,80}}$", whole(MemoryKind.INSTRUCTION),
        sample="Talk to me in German"),
    _en(r"(?:please )?(?:use|keep|avoid|only use|stick to|stop (?:using|adding|writing|saying|apologi[sz]ing)|don't"
        r"|do not|never"
        r"|no more)\b(?! (?:worry|forget|hesitate|mind|know|think|understand|bother))[^?]{0,100}\b(?:emojis?"
        r"|emoticons?|tables?"
        r"|bullet points?|headings|markdown|spelling|metric|imperial|units|tabs|jargon|apologi[sz]e|apologi[sz]ing"
        r"|small talk"
        r"|exclamation marks?|footnotes?|(?:your|all|my|any|code) (?:answers?|replies|responses|code|emails?"
        r"|messages?|examples?)"
        r"|replies|answers|responses|type hints|docstrings|semicolons|comments|logs?|abbreviations|passive voice"
        r"|slang|ever)\b"
        r"[^?]{0,100}$", whole(MemoryKind.INSTRUCTION),
        sample="No more emojis in replies"),
    _en(rf"(?:don't|do not|please don't|please do not|never) (?:suggest|recommend|schedule|plan|book|offer|propose"
        rf"|call me|mention"
        rf"|put|share|store|log|send)\b{REST}", whole(MemoryKind.INSTRUCTION),
        sample="Don't recommend podcasts"),
    _en(rf"(?:please )?(?:always |never )?(?:ask|tell|warn|check with) me (?:before|first|whenever|if you (?:want"
        rf"|need) to){REST}",
        whole(MemoryKind.INSTRUCTION),
        sample="Check with me before you push"),
    _en(r"[a-z][^?]{3,120} (?:from now on|going forward|in (?:the )?future|every time|henceforth)$",
        whole(MemoryKind.INSTRUCTION),
        sample="Put the total first from now on"),
)  # fmt: skip
_NO_STATEMENT = (
    "think|thought|guess|suppose|wonder|wondered|hope|believe|feel|felt|mean|meant|agree|see|saw|know|knew|understand|understood"
    "|need|needed|want|wanted|would|could|should|might|may|will|can|did|was|were|had|got|get|tried|try|trying|looking|reading"
    "|running|getting|seeing|thinking|wondering|going|gonna|about|just|not|sure|sorry|glad|happy|sad|tired|hungry|back|here"
    "|at|on|in|found|heard|noticed|asked|said|told|read|finished|started|wrote|made|did|ran|went|came|saw|met|bought|attached"
    "|attaching|sent|sending|working|testing|using|building|writing|doing|stuck|worried|curious|excited|interested|guess"
    "|question|message|code|function|error|guess|bad|train|flight|favorite|last|next|first|previous|plan|idea|approach|solution|result|answer"
)
_ABOUT_TALK = (
    "you|your|this|that|it|code|function|class|method|file|files|test|tests|error|errors|question|answer|example|examples"
    "|paragraph|sentence|essay|version|translate|explain|tomorrow|today|tonight|yesterday|now|soon|later|minutes?|hours?|ago"
    "|however|let|here's|below|above|following|chapter|figure|section|api|variable|argument|loop|bug|stack trace|log"
)
_EN_MORE: Final[tuple[Rule, ...]] = (
    _en(r"(?:i should|let me|allow me to) introduce myself[:,. ]{1,3}(?!\?)[^?]{4,200}$", whole(MemoryKind.PROFILE),
        sample="Allow me to introduce myself: Ann Lee, plumber from Leeds"),
    _en(r"i go by (?-i:[A-Z])[^?]{1,80}$", whole(MemoryKind.PROFILE),
        sample="I go by Kit at work, Katherine on paper"),
    _en(r"(?:(?:pls|plz|please|just) )+call me (?!back|later|when|if|at|tomorrow|tonight|a\b|an\b|the\b|maybe"
        r"|asap|on\b|in\b|now)"
        r"[^?]{2,50}$", whole(MemoryKind.INSTRUCTION),
        sample="Please call me dr lin not mr"),
    _en(r"(?:my friends|everyone|everybody|people)(?: all)? calls? me (?!a\b|an\b|the\b|back|later|names"
        r"|when|at)[^?]{2,60}$",
        whole(MemoryKind.PROFILE),
        sample="My friends all call me Bo or Bobby"),
    _en(r"i(?:'m| am) \d{1,2}(?=$|,| (?:btw|by the way|so|and|now|already|years)\b)"
        r"[^?]{0,60}$", whole(MemoryKind.PROFILE),
        sample="I'm 67 and retired"),
    _en(r"i(?:'ve| have) been (?:an? |the )?(?!trying|looking|getting|having|wondering|thinking|told|asked"
        r"|working on|using this"
        r"|waiting|stuck|here|there|seeing|able|busy|sick)[\w' -]{3,50} (?:for|since) (?!an? (?:minute|hour"
        r"|while)|hours|minutes|ages)"
        r"[^?]{2,60}$", whole(MemoryKind.FACT),
        sample="I've been a beekeeper for nine years"),
    _en(r"i(?:'m| am) (?:now )?at an? (?!loss|point|bit|crossroads)[\w' -]{3,40}(?: now)?\b"
        r"[^?]{0,60}$", whole(MemoryKind.FACT),
        sample="I am at a bakery now in Ghent"),
    _en(r"i turn \w+(?:[- ]\w+)? (?:in|on|this|next) [^?]{3,30}$", whole(MemoryKind.PROFILE),
        sample="I turn forty in August"),
    _en(r"(?:i|we) (?:do (?:freelance|volunteer|contract|part-time|night)|carry an? |carry my |bank with "
        r"|keep (?:kosher|halal|bees"
        r"|chickens|a diary)|rely on (?:my |a |an )?(?:hearing|captions|transcripts|subtitles|screen reader"
        r"|cane|wheelchair)|manage an? "
        r"|run an? (?!test|script|query|command|job|check)|practi[sc]e (?!this|that|the)|follow a )"
        r"[^?]{1,120}$", whole(MemoryKind.FACT),
        sample="I carry an EpiPen"),
    _en(r"(?:i|we)(?:'m| am|'re| are) (?:a bit |slightly |partially )?(?:hard of hearing|short[- ]sighted"
        r"|visually impaired|on (?:insulin"
        r"|dialysis|benefits|parental leave|maternity leave)|allerg\w+|early risers?|night owls?)\b"
        r"[^?]{0,120}$", whole(MemoryKind.FACT),
        sample="I'm hard of hearing"),
    _en(r"we (?:always|never|usually|normally|only|rarely) (?!said|say|get|got|see|saw|had|did|talked|discussed"
        r"|finished)[^?]{3,100}$",
        whole(MemoryKind.FACT),
        sample="We never fly"),
    _en(r"my (?:phone|laptop|computer|car|bike|tablet|camera|os|editor|stack|dog|cat|instrument|size|blood type"
        r"|sign)'s (?:an? |now )?"
        r"(?!broken|slow|down|dead|stuck|gone|not|frozen|acting|being|making)[^?]{2,80}$", whole(MemoryKind.FACT),
        sample="My instrument's the oboe"),
    _en(r"(?:our|my) (?:new |home |postal |billing )?(?:address|phone number|number|email|surname|main branch"
        r"|fiscal year|staging server"
        r"|landlord|timezone|time zone) (?:is|starts|ends|has)[^?]{2,100}$", whole(MemoryKind.FACT),
        sample="My email ends in example.com"),
    _en(r"(?:we've|we have|i've|i have) moved[:,;] [^?]{4,120}$", whole(MemoryKind.FACT),
        sample="We've moved: the new place is 12 Elm Row"),
    _en(r"(?:i'm a |i am a )?(?:big|huge|massive|lifelong) fan of (?!this|that|your|the (?:first|second"
        r"|last))[^?]{2,60}$",
        whole(MemoryKind.PREFERENCE),
        sample="Massive fan of jazz"),
    _en(r"(?:speaking as an? [\w' -]{3,40}|being an? [\w' -]{3,30}, (?:i|my|we)\b)"
        r"[^?]{0,120}$", whole(MemoryKind.FACT),
        sample="Being a coeliac, I bring my own bread"),
    _en(r"(?!this|that|it\b|you|he\b|she\b|what|which)(?:[\w'-]+ ){0,4}?[\w'-]+ (?:makes?|gives?) me "
        r"(?:break out|swell|itch|throw up|vomit|hives|rashes|an? (?:rash|migraine|headache)|migraines|headaches"
        r"|(?:very |really )?(?:ill|dizzy|nauseous))\b[^?]{0,60}$", whole(MemoryKind.FACT),
        sample="Aspirin gives me hives"),
    _en(r"(?:please )?(?:answer|reply|respond|write|speak|talk)(?: to)?(?: me)?(?: with no| without) [^?]{3,80}$",
        whole(MemoryKind.INSTRUCTION),
        sample="Reply without tables"),
    # how to be served
    _en(r"(?:please )?stop (?!the\b|it\b|this\b|that\b|running|trying|generating|working|here|there)\w+ing\b "
        r"[^?]{3,80}$",
        whole(MemoryKind.INSTRUCTION),
        sample="Stop apologising in every answer"),
    _en(r"from here on(?: out)?,? [^?]{4,120}$", whole(MemoryKind.INSTRUCTION),
        sample="From here on, answer in Dutch"),
    _en(r"when(?:ever)? (?:you (?:write|answer|reply|draft|explain|give|send|suggest|format|translate|quote"
        r"|list|show)|i (?:paste|send"
        r"|share|post|upload|give you|ask (?:you )?for|mention))\b[^?,]{1,80}, (?!i\b|it\b|the\b|what|why"
        r"|how)[^?]{4,120}$",
        whole(MemoryKind.INSTRUCTION),
        sample="When you write code, add type hints"),
    _en(r"(?:you can |you may |please |just )*skip the [\w -]{3,40} (?:with|for) me\b"
        r"[^?]{0,60}$", whole(MemoryKind.INSTRUCTION),
        sample="You can skip the disclaimers with me"),
    _en(r"for (?:all|any|every|each) (?:of )?(?:my |our )?(?:future |new )?(?:emails?|letters?|messages?"
        r"|answers?|replies|code|reports?"
        r"|documents?|meetings?|tickets?|invoices?),? [^?]{4,120}$", whole(MemoryKind.INSTRUCTION),
        sample="For all future emails sign off with Warmly"),
    _en(r"[^?]{3,80}, (?:always|every time)$", whole(MemoryKind.INSTRUCTION),
        sample="Dates as YYYY-MM-DD, always"),
    _en(rf"(?:i|we|my|our)(?:'m|'re| am| are)? (?!(?:{_NO_STATEMENT}|\w+ing|\w+ed|have|also|still|currently"
        rf"|definitely|really|always|a bit)\b)(?!.*\b(?:{_ABOUT_TALK})\b)"
        r"(?=.{6,90}$)(?=.* (?-i:[A-Z][a-z]+|[A-Z]{2,6}\b|\d))[^?]+$", whole(MemoryKind.FACT),
        sample="I no longer follow Ajax"),
)  # fmt: skip

ENGLISH: Final[tuple[Rule, ...]] = (
    _en(
        r"(?:please )?(?:remember|keep in mind|bear in mind|don't forget|do not forget)(?: that\b|:"
        r"|,? (?=my\b|i\b|i'm\b|i've\b|we\b|our\b))[: ]*(?P<x>.{3,250}?)$",
        explicit_request,
        sample="Remember: the spare key is under the pot"),
    _en(rf"my (?:full |first |real )?name(?:'s| is) {_NAME}", profile("The user's name is {x}.", "name", 0.95),
        sample="My name is Tilda"),
    _en(rf"my (?:full |first |real )?name(?: is not|'s not| isn't) [^,;]{{1,30}}(?:[,;]|(?= but\b)) ?(?:it's"
        rf"|it is|but) {_NAME}",
        profile("The user's name is {x}.", "name", 0.95),
        sample="My name isn't Tilda, it's Matilda"),
    _en(r"i(?:'m| am) (?P<x>(?-i:[A-Z][a-z]{1,20}(?: [A-Z][a-z]{1,20})?))(?=,? (?:and i|nice to meet|pleased to)\b)",
        profile("The user's name is {x}.", "name"),
        sample="I'm Jonas, nice to meet you"),
    _en(rf"(?:my friends|everyone|everybody|people)(?: all)? (?:calls?|just calls?) me {_NAME}",
        profile("The user wants to be called {x}.", "form of address"),
        sample="Everybody calls me Bo"),
    _en(rf"(?:you can |you may |please |just |everyone can )*(?:call me|i go by) (?:dr\.? |mr\.? |ms\.? "
        rf"|mrs\.? )?{_NAME}",
        profile("The user wants to be called {x}.", "form of address", 0.95),
        sample="Call me Ishmael"),
    _en(rf"i(?:'m| am) (?P<no>not )?(?:(?:severely|highly|very|also|deathly|mildly) )*allergic to {_THING}",
        health("The user is allergic to {x}.", "The user is not allergic to {x}.", "allergy: {x}"),
        sample="I'm allergic to shrimp"),
    _en(rf"i(?: really)? (?:can't|cannot|can not|mustn't|must not|am not allowed to|'m not allowed to)"
        rf" (?:eat|drink|tolerate|have(?! (?:a|an|kids|children|pets|both|fun)\b)) (?!{NO_FOOD}\b){_THING}",
        health("The user can't have {x}.", "", "cannot have: {x}"),
        sample="I can't eat gluten"),
    _en(rf"i(?:'m| am) (?P<no>not )?(?:a |an )?(?P<x>{_DIETS})\b",
        health("The user is {x}.", "The user is not {x}.", "diet: {x}"),
        sample="I'm vegan"),
    _en(rf"my favou?rite (?P<k>[\w' -]{{2,40}}?) (?:is|are) {_THING}", favourite("The user's favourite {k} is {x}."),
        sample="My favourite season is autumn"),
    _en(rf"i (?:{_ADVERB})(?P<v>prefer|love|like|enjoy|hate|dislike) {_THING}", taste("The user {v} {x}."),
        sample="I prefer trains to planes"),
    _en(rf"i (?P<v>don't like|do not like|no longer like|don't enjoy|can't stand|cannot stand|don't eat|don't drink) "
        rf"{_THING}", taste("The user {v} {x}."),
        sample="I don't eat pork"),
    _en(rf"(?:i|we) (?:now |currently |still |both |all )?live in (?!fear|hope|denial|interesting|uncertain"
        rf"|strange|dark|hard|a\b|an\b|the (?:past"
        rf"|moment)){_THING}",
        profile("The user lives in {x}.", "home"),
        sample="We live in Ghent"),
    _en(rf"i(?:'ve| have)?(?: just| recently)? moved to (?!a\b|an\b|the (?:next|new|other)|{_NO_PLACE}"
        rf"|using\b){_THING}", profile("The user lives in {x}.", "home", 0.8),
        sample="I moved to Turin"),
    _en(rf"(?:we|my family and i)(?:'ve| have)?(?: just| recently| all)? moved(?: back| over)?(?: from (?-i:[A-Z])\w+)?"
        rf" to (?!{_NO_PLACE})(?P<x>(?-i:[A-Z][^\W\dA-Z_]+(?:[ -][A-Z][^\W\dA-Z_]+){{0,2}}))(?![\w.])",
        profile("The user lives in {x}.", "home", 0.8),
        sample="We moved to Ghent last month"),
    _en(rf"i(?:'m| am) (?:originally )?from (?!the (?:future|past)|here){_THING}",
        profile("The user is from {x}.", "origin"),
        sample="I'm from Chile"),
    _en(rf"i (?:now |currently )?work (?:at|for) (?!it|you|this|that|a\b|an\b|my\b|me\b){_THING}",
        profile("The user works at {x}.", "employer"),
        sample="I work at Miele"),
    _en(rf"i (?:now |currently )?work as (?:a |an |the )?{_THING}", profile("The user works as: {x}.", "profession"),
        sample="I work as a tailor"),
    _en(rf"i(?:'m| am) (?:a|an) (?P<x>(?:[\w-]+ )?(?:{_WORK}))\b", profile("The user is a {x}.", "profession"),
        sample="I'm a civil engineer"),
    _en(r"i(?:'m| am) (?P<x>\d{1,3}) years old\b", profile("The user is {x} years old.", "age"),
        sample="I'm 41 years old"),
    _en(rf"i speak (?!to\b|with\b|for\b|of\b|about\b){_THING}", profile("The user speaks {x}.", "languages", 0.85),
        sample="I speak Dutch"),
    _en(rf"my (?P<k>{_KIN})(?:'s name is| is (?:called|named)) {_NAME}",
        profile("The user's {k} is called {x}.", "name of {k}"),
        sample="My dog's name is Rex"),
    _en(rf"my (?P<k>{_DETAILS})(?: is| are|'s) (?P<x>[^,;!?]{{1,60}}?)(?=$|[,;!]|\.(?:\s|$)| and\b| but\b)",
        profile("The user's {k}: {x}.", "{k}"),
        sample="My shoe size is 44"),
    _en(rf"(?:from now on|going forward|in (?:the )?future|henceforth),? (?:please |you (?:should|must) "
        rf"|i want you to )?(?:always |never |only )?(?:{_ORDERS})\b.{{2,200}}$", instruction,
        sample="From now on, answer in Dutch"),
    _en(rf"(?:please )?(?:always|never) (?:{_ORDERS})\b.{{2,200}}$", instruction,
        sample="Never mention prices"),
    _en(r"(?:please )?never (?!mind\b|again\b|seen|heard|been|thought|had|knew|saw|tried|used|ever|once"
        r"|\w+ed\b)\w+ [^?]{2,100}"
        r" (?:without|unless|before|until) [^?]{3,80}$", whole(MemoryKind.INSTRUCTION),
        sample="Never push to main without asking me"),
    *_EN_WHOLE,
    *_EN_MORE,
)  # fmt: skip
